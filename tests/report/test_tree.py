import numpy as np

from dccm.report.tree import MOST_LEAVES, Leaf, cluster_tree, tree_chart
from dccm.runs.contents import Assignments


def assigned(clusters: list[int]) -> Assignments:
    names, no = [str(number) for number in range(len(clusters))], np.zeros(len(clusters), bool)
    return Assignments(names, np.array(clusters, dtype=np.int64), np.ones(len(clusters)), no, no)


def leaf(number: int, picture: str = "") -> Leaf:
    return Leaf(f"Cluster {number}", f"cluster-{number}", 7, picture)


def test_clusters_that_lie_close_merge_first() -> None:
    embedding = np.array([[0, 0], [0, 2], [10, 0], [11, 1], [50, 50]], dtype=np.float32)
    shown, merges = cluster_tree(embedding, assigned([0, 0, 2, 3, 5]))
    assert shown == [0, 2, 3, 5]  # Clusters 1 and 4 hold nothing.
    assert sorted(merges[0, :2].tolist()) == [1, 2]
    assert merges[0, 2] == np.float64(2) ** 0.5
    assert merges[-1, 3] == 4


def test_one_cluster_has_no_tree() -> None:
    shown, merges = cluster_tree(np.zeros((3, 2), np.float32), assigned([0, 0, 0]))
    assert shown == []
    assert tree_chart([], merges, title="Tree") == ""


def test_broken_features_have_no_tree() -> None:
    assert cluster_tree(np.full((2, 2), np.nan, np.float32), assigned([0, 1]))[0] == []


def test_equal_clusters_are_drawn() -> None:
    shown, merges = cluster_tree(np.ones((4, 2), np.float32), assigned([0, 1, 2, 2]))
    drawing = tree_chart([leaf(number) for number in shown], merges, title="Tree")
    assert "nan" not in drawing
    assert drawing.count("<path") == 2


def test_of_many_clusters_the_largest_are_drawn() -> None:
    clusters = [*range(250), *range(40, 250)]
    embedding = np.random.default_rng(0).normal(size=(len(clusters), 8)).astype(np.float32)
    shown, merges = cluster_tree(embedding, assigned(clusters))
    assert len(shown) == MOST_LEAVES == len(merges) + 1
    assert min(shown) == 40
    drawing = tree_chart([leaf(number) for number in shown], merges, title="Tree")
    assert drawing.count("<path") == MOST_LEAVES - 1
    assert f'aria-label="Tree: {MOST_LEAVES} clusters"' in drawing


def test_a_leaf_leads_to_its_cluster_and_shows_its_picture() -> None:
    shown, merges = cluster_tree(np.eye(3, dtype=np.float32), assigned([0, 1, 2]))
    drawing = tree_chart([leaf(number, "data:image/png;base64,AA") for number in shown], merges, title="Tree")
    assert drawing.count('<a href="#cluster-') == 3
    assert drawing.count('<image href="data:image/png;base64,AA"') == 3
    assert "Cluster 2: 7 images" in drawing
