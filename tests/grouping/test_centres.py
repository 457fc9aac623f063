import numpy as np
import pytest
from sklearn.cluster import KMeans

from dccm.grouping.centres import merged_centres

SIZES = (400, 400, 60, 40, 20, 10)


def uneven(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Six groups in eight dimensions, of very different size."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(SIZES)), SIZES)
    return (random.normal(0, 6, (len(SIZES), 8))[labels] + random.normal(0, 1, (len(labels), 8))).astype(
        np.float32
    ), labels


@pytest.mark.parametrize("seed", range(5))
def test_small_groups_beside_large_ones_get_a_centre_each(seed: int) -> None:
    points, labels = uneven(seed)
    found = KMeans(6, init=merged_centres(points, 6, seed), n_init=1).fit(points).labels_
    assert len({(one, other) for one, other in zip(labels.tolist(), found.tolist())}) == 6


def test_the_same_seed_gives_the_same_centres() -> None:
    points, _ = uneven(0)
    assert np.array_equal(merged_centres(points, 6, 3), merged_centres(points, 6, 3))


def test_as_many_clusters_as_points() -> None:
    points = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    assert np.allclose(np.sort(merged_centres(points, 7, 0)[:, 0]), np.sort(points[:, 0]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_copies_of_two_points_still_give_all_centres() -> None:
    points = np.repeat(np.eye(2, 3, dtype=np.float32), 10, axis=0)
    centres = merged_centres(points, 5, 0)
    assert centres.shape == (5, 3)
    assert np.isfinite(centres).all()
