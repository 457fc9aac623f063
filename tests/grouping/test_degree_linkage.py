import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from dccm.errors import UserError
from dccm.grouping.degree_linkage import (
    Neighbours,
    affinity,
    agglomerate,
    closest_clusters,
    cluster_means,
    first_clusters,
    merge_scores,
    neighbour_graph,
)
from dccm.methods.jule import neighbours_of
from tests.support import few_examples, seeded


def on_a_line(*places: float) -> torch.Tensor:
    return torch.tensor(places, dtype=torch.float32).unsqueeze(1)


def clustered(features: torch.Tensor, n_clusters: int, neighbours: int = 3, outliers: bool = True) -> np.ndarray:
    near = neighbours_of(features, neighbours)
    start = first_clusters(near, n_clusters)
    return agglomerate(features, neighbour_graph(near), start, n_clusters, outliers=outliers)


def test_nearest_neighbours_by_hand() -> None:
    whole = neighbours_of(on_a_line(0, 1, 3, 7), 2)
    assert whole.number.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    torch.testing.assert_close(whole.squared, torch.tensor([[1.0, 9], [1, 4], [4, 9], [16, 36]]))


def test_no_more_neighbours_than_there_are_others() -> None:
    assert neighbours_of(on_a_line(0, 1, 3), 20).number.shape == (3, 2)


def test_graph_weights_fall_with_the_distance_in_units_of_its_mean() -> None:
    near = Neighbours(torch.tensor([[1], [0], [1]]), torch.tensor([[1.0], [1.0], [4.0]]))  # The mean is 2.
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[1, 0] = np.exp(-0.5)
    expected[2, 1] = np.exp(-2)
    np.testing.assert_allclose(neighbour_graph(near).toarray(), expected, rtol=1e-6)
    np.testing.assert_allclose(neighbour_graph(near, 2.0).toarray()[2, 1], np.exp(-1), rtol=1e-6)


def test_equal_images_have_a_graph_of_ones() -> None:
    assert set(neighbour_graph(neighbours_of(torch.ones(4, 2), 2)).data) == {1.0}


def test_first_clusters_join_nearest_neighbours_and_are_never_too_few() -> None:
    near = neighbours_of(on_a_line(0, 1, 10, 11, 12.5), 1)
    assert first_clusters(near, 2).tolist() == [0, 0, 1, 1, 1]
    assert first_clusters(near, 3).tolist() == [0, 1, 2, 3, 4]


def test_affinity_by_hand() -> None:
    graph = np.zeros((3, 3))
    graph[0, 2], graph[1, 2], graph[2, 0] = 0.5, 0.25, 0.8
    found = affinity(csr_array(graph), np.array([0, 0, 1])).toarray()
    # Cluster {0, 1} seen from sample 2: 0.75 to it, 0.8 back, over 2². Cluster {2} seen from sample 0: 0.8 * 0.5.
    expected = 0.75 * 0.8 / 4 + 0.8 * 0.5
    np.testing.assert_allclose(found, [[0, expected], [expected, 0]])


@few_examples
@given(st.integers(3, 12), st.integers(0, 99))
def test_affinity_is_the_formula_with_whole_matrices(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    graph = random.random((size, size)) * (random.random((size, size)) < 0.4)
    labels = np.unique(random.integers(0, 3, size), return_inverse=True)[1]
    found = affinity(csr_array(graph), labels).toarray()
    for i in range(labels.max() + 1):
        for j in range(labels.max() + 1):
            out, back = graph[labels == i][:, labels == j], graph[labels == j][:, labels == i]
            wanted = (out @ back).sum() / len(out) ** 2 + (back @ out).sum() / len(back) ** 2
            assert found[i, j] == pytest.approx(wanted if i != j else 0)


def test_closest_clusters_come_in_order_and_a_lonely_one_has_none() -> None:
    closest, largest = closest_clusters(csr_array(np.array([[0, 2.0, 3, 0], [2, 0, 0, 0], [3, 0, 0, 0], [0] * 4])), 2)
    assert closest.tolist() == [2, 0, 0, -1]
    assert largest.tolist() == [[3, 2], [2, 0], [3, 0], [0, 0]]


def test_a_cluster_that_stands_out_from_its_rivals_merges_first() -> None:
    largest = np.array([[1.0, 0.9, 0.9], [0.95, 0.1, 0.1]])
    np.testing.assert_allclose(merge_scores(largest, 1.0), [1.1, 1.8])
    np.testing.assert_allclose(merge_scores(largest, 0.0), [1.0, 0.95])
    np.testing.assert_allclose(merge_scores(largest[:, :1], 1.0), [1.0, 0.95])


def test_the_closest_clusters_merge_first() -> None:
    # Three pairs; the first two pairs are nearer to each other than to the third.
    features = on_a_line(0, 1, 3, 4, 9, 10)
    near = neighbours_of(features, 3)
    labels = first_clusters(near, 2)
    assert labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert agglomerate(features, neighbour_graph(near), labels, 2).tolist() == [0, 0, 0, 0, 1, 1]


@few_examples
@given(st.integers(5, 60), st.integers(1, 5), st.integers(0, 99), st.integers(1, 8))
def test_exactly_so_many_clusters_remain_and_none_is_ever_torn_apart(
    size: int, n_clusters: int, seed: int, neighbours: int
) -> None:
    features = torch.randn(size, 2, generator=seeded(seed))
    near = neighbours_of(features, neighbours)
    start = first_clusters(near, n_clusters)
    found = agglomerate(features, neighbour_graph(near), start, n_clusters)
    assert sorted(set(found)) == list(range(n_clusters))
    assert all(len(set(found[start == label])) == 1 for label in set(start))


def test_clusters_without_a_connection_merge_by_their_means() -> None:
    features = on_a_line(0, 1, 100, 101, 102, 110, 111, 112)
    near = neighbours_of(features, 1)
    labels = np.array([0, 0, 1, 1, 1, 2, 2, 2])
    assert agglomerate(features, neighbour_graph(near), labels, 2).tolist() == [0] * 5 + [1] * 3


def test_outliers_that_nobody_calls_neighbours_are_no_group_of_their_own() -> None:
    # A crowd, and two images far off whose neighbours are its last ones.
    features = torch.cat([torch.arange(40) / 20, torch.tensor([12.0, 12.1])]).unsqueeze(1)
    assert clustered(features, 2, neighbours=4).tolist() == [0] * 40 + [1] * 2
    found = clustered(features, 2, neighbours=4, outliers=False)
    assert found[39:].tolist() == [1, 1, 1]
    assert np.bincount(found).min() > 4


def test_a_few_images_with_a_trace_of_affinity_are_no_group_of_their_own_either() -> None:
    # The last image of the first crowd calls one of the pair a neighbour, from afar.
    crowd = torch.arange(20) / 20
    features = torch.cat([crowd, torch.tensor([1.4, 1.4]), 5 + crowd, 6.2 + crowd]).unsqueeze(1)
    found = clustered(features, 3, neighbours=4, outliers=False)
    assert sorted(np.bincount(found).tolist()) == [20, 20, 22]


def test_a_small_crowd_far_from_all_others_stays_a_group_of_its_own() -> None:
    crowd = torch.arange(40) / 20
    features = torch.cat([crowd, 100 + crowd[:6]]).unsqueeze(1)
    assert clustered(features, 2, neighbours=4, outliers=False).tolist() == [0] * 40 + [1] * 6


def test_two_rings_are_told_apart_though_their_means_are_the_same() -> None:
    angle = torch.arange(60) * (2 * torch.pi / 60)
    ring = torch.stack([angle.cos(), angle.sin()], dim=1)
    found = clustered(torch.cat([ring, 4 * ring]), 2, neighbours=4)
    assert found.tolist() == [0] * 60 + [1] * 60


def test_cluster_means_by_hand() -> None:
    assert cluster_means(on_a_line(1, 3, 10), torch.tensor([0, 0, 1])).tolist() == [[2], [10]]


def test_no_cluster_at_all_is_refused() -> None:
    with pytest.raises(UserError, match="n_clusters must be at least 1, got 0."):
        clustered(on_a_line(0, 1, 3, 4), 0)
