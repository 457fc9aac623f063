import numpy as np
import pytest

from dccm.grouping import spread as module
from dccm.grouping.spread import distances, gap, spread_of

FEATURES = np.array([[0, 0], [0, 2], [10, 1], [10, 3], [10, 5]], np.float32)
CLUSTERS = np.array([0, 0, 2, 2, 2])


def test_means_and_sizes_by_hand() -> None:
    found = spread_of(FEATURES, CLUSTERS, 3)
    assert found.means.tolist() == [[0, 1], [0, 0], [10, 3]]
    assert found.sizes.tolist() == [2, 0, 3]


def test_empty_clusters_are_near_nothing() -> None:
    apart = spread_of(FEATURES, CLUSTERS, 3).apart()
    assert apart[0, 2] == apart[2, 0] == pytest.approx(104**0.5)
    assert np.isinf(apart[1]).all()
    assert np.isinf(np.diag(apart)).all()


def test_an_even_cloud_that_is_cut_in_two_has_no_gap_and_clouds_apart_have_one() -> None:
    points = np.random.default_rng(0).uniform(-1, 1, (4000, 20)).astype(np.float32)
    halves = (points[:, 0] > 0).astype(np.int64)
    assert gap(points, halves, spread_of(points, halves, 2), 0, 1) == pytest.approx(3**0.5, abs=0.1)
    points[:, 0] += 3 * halves
    assert gap(points, halves, spread_of(points, halves, 2), 0, 1) == pytest.approx(4 * 3**0.5, rel=0.1)


def test_clusters_of_equal_images_are_parted() -> None:
    points = np.array([[0.0], [0.0], [1.0], [1.0]], np.float32)
    assert gap(points, np.array([0, 0, 1, 1]), spread_of(points, np.array([0, 0, 1, 1]), 2), 0, 1) == np.inf


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = spread_of(FEATURES, CLUSTERS, 3)
    far = distances(FEATURES, CLUSTERS, whole.means)
    assert far == pytest.approx([1, 1, 2, 0, 2])
    monkeypatch.setattr(module, "_VALUES", 4)
    parts = spread_of(FEATURES, CLUSTERS, 3)
    assert np.allclose(parts.means, whole.means)
    assert np.array_equal(distances(FEATURES, CLUSTERS, whole.means), far)


def test_broken_features_have_no_near_clusters() -> None:
    broken = spread_of(np.full((4, 2), np.nan, np.float32), np.array([0, 0, 1, 1]), 2)
    assert np.isinf(broken.apart()).all()
