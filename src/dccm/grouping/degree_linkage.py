"""Clusters that grow together on a graph of nearest neighbours: graph degree linkage (Zhang et al., ECCV 2012)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from dccm.errors import require

Clusters = npt.NDArray[np.int64]
"""The cluster of each sample, (N,)."""

_SHARE = 20
"""One in this many clusters merges before affinities are computed anew; below twice as many, one at a time."""


_OF_A_GROUP = 10
"""One in this many images of a K-th of all are too few to be one of the K groups."""


class Neighbours(NamedTuple):
    """The nearest neighbours of each sample, the nearest first."""

    number: Tensor
    """(N, k)."""
    squared: Tensor
    """Squared distance to each, (N, k)."""


def neighbour_graph(neighbours: Neighbours, width: float = 1.0) -> csr_array:
    """Weights W of the directed graph: exp(-d² / σ²), σ² the mean squared distance of neighbours times `width`."""
    number, squared = (tensor.cpu().numpy() for tensor in neighbours)
    scale = max(width * float(squared.mean(dtype=np.float64)), 1e-12)
    rows = np.repeat(np.arange(len(number)), number.shape[1])
    weights = np.exp(-squared.astype(np.float64).ravel() / scale)
    return csr_array(coo_array((weights, (rows, number.ravel())), shape=(len(number), len(number))))


def first_clusters(neighbours: Neighbours, fewest: int) -> Clusters:
    """Join each sample with its nearest one; leave all of them single if that gives fewer than `fewest` clusters."""
    nearest = neighbours.number[:, 0].cpu().numpy()
    count = len(nearest)
    links = coo_array((np.ones(count), (np.arange(count), nearest)), shape=(count, count))
    found, clusters = connected_components(links, directed=False)
    return clusters.astype(np.int64) if found >= fewest else np.arange(count)


def affinity(graph: csr_array, clusters: Clusters) -> csr_array:
    """Affinity of all pairs of clusters: average degree into a cluster times that out of it, both ways.

    A(i, j) = 1ᵀ W_ij W_ji 1 / |i|² + 1ᵀ W_ji W_ij 1 / |j|².

    Args:
        graph: Weights W, (N, N).
        clusters: Cluster of each sample, (N,), 0 to n - 1.

    Returns:
        (n, n), symmetric, nothing on the diagonal.
    """
    count = int(clusters.max()) + 1
    member = csr_array((np.ones(len(clusters)), (np.arange(len(clusters)), clusters)), shape=(len(clusters), count))
    both_ways = (graph.T @ member).multiply(graph @ member)  # Of each sample: from cluster i, times to cluster i.
    per_pair = csr_array(member.T @ both_ways)  # Row: the sample's cluster j; column: cluster i.
    scaled = coo_array(per_pair / np.bincount(clusters).astype(np.float64) ** 2)
    outside = scaled.row != scaled.col
    one_way = csr_array((scaled.data[outside], (scaled.row[outside], scaled.col[outside])), shape=(count, count))
    return csr_array(one_way + one_way.T)


def closest_clusters(affinities: csr_array, count: int) -> tuple[Clusters, npt.NDArray[np.float64]]:
    """For each cluster the one of largest affinity, (n,), or -1; and its largest affinities, (n, count)."""
    clusters = affinities.shape[0]
    pairs = coo_array(affinities)
    order = np.lexsort((pairs.col, -pairs.data, pairs.row))
    row, column, value = pairs.row[order], pairs.col[order], pairs.data[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)
    closest, largest = np.full(clusters, -1), np.zeros((clusters, count))
    closest[row[place == 0]] = column[place == 0]
    kept = place < count
    largest[row[kept], place[kept]] = value[kept]
    return closest, largest


def merge_scores(largest: npt.NDArray[np.float64], contrast: float) -> npt.NDArray[np.float64]:
    """How well a cluster and its closest one would merge (JULE's forward loss with the sign reversed).

    Their affinity, plus how far it stands out from those to the next closest clusters on average.
    """
    best, others = largest[:, 0], largest[:, 1:]
    return best + contrast * (best[:, None] - others).mean(axis=1) if others.shape[1] else best


def agglomerate(
    features: Tensor,
    graph: csr_array,
    clusters: Clusters,
    n_clusters: int,
    *,
    rivals: int = 5,
    contrast: float = 1.0,
    outliers: bool = True,
) -> Clusters:
    """Merge the closest clusters until K remain.

    A few images that hardly anybody calls neighbours have hardly any affinity to anything: as outliers they are among
    the K to the end, and large clusters merge in their place. Without outliers, large ones merge with each other only
    while more than K are left. Few are no more than an image has neighbours, and no more than a tenth of a K-th of all.

    Args:
        features: (N, D); used only when no two clusters that may merge are connected.
        graph: `neighbour_graph` of the features.
        clusters: Clusters to begin with, (N,), 0 to n - 1.
        n_clusters: K; if there are no more clusters than that, nothing is merged.
        rivals: Closest clusters that a merge is judged by.
        contrast: Weight of how far the closest one stands out from the others.
        outliers: Whether a few images may be one of the K.
    """
    require(n_clusters >= 1, f"n_clusters must be at least 1, got {n_clusters}.")
    few = 0 if outliers else min(np.diff(graph.indptr).max(), len(clusters) / n_clusters / _OF_A_GROUP)
    while (count := int(clusters.max()) + 1) > n_clusters:
        closest, largest = closest_clusters(affinity(graph, clusters), rivals)
        scores = np.where(closest >= 0, merge_scores(largest, contrast), -np.inf)
        pairs = [(int(i), int(closest[i])) for i in (-scores).argsort(kind="stable") if closest[i] >= 0]
        most = min(max(1, count // _SHARE), count - n_clusters)
        large = np.bincount(clusters) > few
        chosen = _without_repeats(pairs, most, large, int(large.sum()) - n_clusters)
        clusters = _merged(clusters, chosen or [_smallest_and_nearest(features, clusters)])
    return clusters


def _without_repeats(
    pairs: list[tuple[int, int]], most: int, large: npt.NDArray[np.bool_], spare: int
) -> list[tuple[int, int]]:
    """The first pairs in which no cluster occurs twice; of two large clusters only as many as can be spared."""
    chosen: list[tuple[int, int]] = []
    taken: set[int] = set()
    for first, second in pairs:
        costs = int(large[first] and large[second])
        if len(chosen) < most and taken.isdisjoint((first, second)) and costs <= max(spare, 0):
            chosen.append((first, second))
            taken.update((first, second))
            spare -= costs
    return chosen


def _merged(clusters: Clusters, pairs: list[tuple[int, int]]) -> Clusters:
    """Clusters after these merges, numbered 0 to n - 1 in the old order."""
    name = np.arange(int(clusters.max()) + 1)
    for first, second in pairs:
        name[max(first, second)] = min(first, second)
    return np.unique(name[clusters], return_inverse=True)[1].astype(np.int64)


def _smallest_and_nearest(features: Tensor, clusters: Clusters) -> tuple[int, int]:
    """The smallest cluster, and the one whose mean is nearest to its own."""
    smallest = int(np.bincount(clusters).argmin())
    return smallest, _nearest_mean(cluster_means(features, torch.from_numpy(clusters)), smallest)


def _nearest_mean(means: Tensor, one: int) -> int:
    """The cluster whose mean is nearest to that of this one."""
    distance = (means - means[one]).square().sum(dim=1)
    distance[one] = torch.inf
    return int(distance.argmin())


def cluster_means(features: Tensor, clusters: Tensor) -> Tensor:
    """Mean feature of each cluster, (n, D)."""
    clusters = clusters.to(features.device)
    sums = features.new_zeros(int(clusters.max()) + 1, features.shape[1]).index_add_(0, clusters, features)
    return sums / torch.bincount(clusters).unsqueeze(1)
