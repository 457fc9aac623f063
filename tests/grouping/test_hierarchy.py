import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from dccm.grouping.hierarchy import Clusters, Floats, Linkage, Merge, cut, join_clusters
from tests.support import few_examples


def ignore(_: float) -> None:
    """Nobody watches."""


def tree_of(points: Floats, kind: Linkage) -> list[Merge]:
    return join_clusters(Clusters(points, np.arange(len(points)), kind), ignore)


@given(count=st.integers(2, 60), size=st.integers(1, 4), seed=st.integers(0, 99), data=st.data())
@few_examples
def test_the_tree_is_that_of_always_joining_the_cheapest_pair(
    count: int, size: int, seed: int, data: st.DataObject
) -> None:
    points = np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
    clusters = data.draw(st.integers(1, count))
    plain = {"ward": linkage(points, "ward"), "average": linkage(pdist(points, "sqeuclidean"), "average")}
    kinds: tuple[Linkage, ...] = ("ward", "average")
    for kind in kinds:
        merges = tree_of(points, kind)
        found = cut(merges, clusters)
        assert len(np.unique(found)) == clusters
        # Not fcluster: with SciPy 1.14 it makes one cluster too many.
        assert adjusted_rand_score(found, cut_tree(plain[kind], clusters).ravel()) == pytest.approx(1)
        heights = plain[kind][:, 2] ** 2 / 2 if kind == "ward" else plain[kind][:, 2]
        np.testing.assert_allclose(sorted(merge.cost for merge in merges), heights, rtol=1e-3, atol=1e-4)


def test_costs_worked_by_hand() -> None:
    points = np.array([[0.0], [2.0], [7.0]], np.float32)  # Clusters {0, 2} and {7}.
    groups = np.array([0, 0, 1])
    # Squared distances 49 and 25, mean 37; centres 1 and 7: 36 * 2 * 1 / 3.
    assert Clusters(points, groups, "average").costs(0).tolist() == [np.inf, 37]
    assert Clusters(points, groups, "ward").costs(0).tolist() == [np.inf, 24]


def test_a_joined_cluster_is_what_its_points_make() -> None:
    points = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    joined = Clusters(points, np.repeat([0, 1, 2], [2, 4, 3]), "ward")
    joined.join(0, 2)
    joined.pack()
    whole = Clusters(points, np.repeat([0, 1, 0], [2, 4, 3]), "ward")
    for name in ("sizes", "centres", "squares", "spreads"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-5)


@pytest.mark.parametrize("kind", ["ward", "average"])
def test_equal_distances_everywhere_still_end_in_one_cluster(kind: Linkage) -> None:
    assert len(set(cut(tree_of(np.eye(30, dtype=np.float32), kind), 4).tolist())) == 4
    assert len(set(cut(tree_of(np.ones((30, 2), np.float32), kind), 1).tolist())) == 1
