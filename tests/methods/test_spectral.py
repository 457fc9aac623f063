from typing import Any

import numpy as np
import pytest

from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.evaluation.metrics import accuracy
from dccm.methods.spectral import (
    SpectralConfig,
    by_kmeans,
    by_rotation,
    leading_eigenvectors,
    self_tuning_affinity,
    unit_rows,
)
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.training.progress import Progress, Stage


def line(*points: float) -> tuple[np.ndarray, np.ndarray]:
    """All others of points on a line, nearest first, and their distances."""
    distances = np.abs(np.subtract.outer(points, points))
    np.fill_diagonal(distances, -1)  # Each point comes before its copies, and is left out.
    places = distances.argsort(axis=1, kind="stable")[:, 1:]
    return places, np.take_along_axis(distances, places, axis=1)


def test_affinity_worked_by_hand() -> None:
    places, distances = line(0.0, 1.0, 3.0)
    affinity = self_tuning_affinity(places, distances, 1).toarray()
    # Scales are 1, 1 and 2.
    expected = np.exp([[-np.inf, -1, -9 / 2], [-1, -np.inf, -4 / 2], [-9 / 2, -4 / 2, -np.inf]])
    np.testing.assert_allclose(affinity, expected)


def test_affinity_is_symmetric_and_does_not_change_with_the_unit_of_length() -> None:
    places, distances = line(*np.random.default_rng(0).uniform(size=20))
    places, distances = places[:, :5], distances[:, :5]
    affinity = self_tuning_affinity(places, distances, 3)
    np.testing.assert_array_equal(affinity.toarray(), affinity.toarray().T)
    np.testing.assert_allclose(self_tuning_affinity(places, 1000 * distances, 3).toarray(), affinity.toarray())


def test_copies_have_affinity_one() -> None:
    affinity = self_tuning_affinity(*line(1.0, 1.0, 1.0), 2)
    np.testing.assert_array_equal(affinity.toarray(), 1 - np.eye(3))


@pytest.mark.parametrize("each", [12, 60])  # Below and above the size from which Lanczos is used.
@pytest.mark.parametrize("assign", [by_rotation, by_kmeans])
def test_groups_of_different_density_are_told_apart(each: int, assign: Any) -> None:
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(0, 0.1, each), random.normal(5, 1, each), random.normal(40, 8, each)])
    places, distances = line(*points)
    vectors = leading_eigenvectors(self_tuning_affinity(places[:, :10], distances[:, :10], 7), 3, seed=0)
    assert accuracy(np.repeat([0, 1, 2], each), assign(unit_rows(vectors), 0)) > 0.95


def test_lanczos_finds_the_eigenvectors_of_the_whole_matrix() -> None:
    places, distances = line(*np.random.default_rng(1).normal(size=150))
    affinity = self_tuning_affinity(places[:, :20], distances[:, :20], 7)
    vectors = leading_eigenvectors(affinity, 4, seed=0)
    degrees = np.sqrt(affinity.sum(axis=1))
    normalised = affinity.toarray() / np.outer(degrees, degrees)
    largest = np.linalg.eigvalsh(normalised)[::-1][:4]
    np.testing.assert_allclose(normalised @ vectors, vectors * largest, atol=1e-8)


@pytest.mark.parametrize("groups", [3, 5, 8])
def test_every_unlinked_group_gets_its_own_eigenvector(groups: int) -> None:
    random = np.random.default_rng(0)
    places, distances = line(*np.concatenate([random.normal(1000 * group, 1, 40) for group in range(groups)]))
    vectors = leading_eigenvectors(self_tuning_affinity(places[:, :10], distances[:, :10], 7), groups, seed=0)
    assert accuracy(np.repeat(np.arange(groups), 40), by_rotation(unit_rows(vectors), 0)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_rotation_hides_no_group(seed: int) -> None:
    groups = np.arange(30) % 3
    turned = np.eye(3)[groups] @ np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    assert accuracy(groups, by_rotation(turned, seed)) == 1


def test_images_are_clustered_with_progress_that_names_its_stages() -> None:
    found = bars(120, side=12)
    stages: list[Progress | Stage] = []
    config = make_config("spectral", overrides={"n_clusters": 4})
    predicted = fit(found.images, config, on_progress=stages.append).model.predict_proba(found.images)
    assert found.labels is not None
    assert accuracy(found.labels, predicted.argmax(axis=1)) > 0.9
    assert all(isinstance(stage, Stage) for stage in stages)
    assert Stage("assignment", 1.0) in stages
    assert stages[-1] == Stage("confidence", 1.0)


def test_fewer_different_images_than_clusters_get_fewer_clusters() -> None:
    images = np.repeat(bars(3, side=8).images, 4, axis=0)
    model = fit(images, make_config("spectral", overrides={"n_clusters": 5})).model
    labels = model.predict_proba(images).argmax(axis=1)
    assert len(np.unique(labels)) <= 3


def test_the_neighbour_that_gives_the_scale_is_among_the_neighbours() -> None:
    text = "scale_neighbour must not exceed neighbours, 5, got 7. Lower it, or raise neighbours."
    with pytest.raises(UserError, match=f"^{text}$"):
        SpectralConfig(neighbours=5)
