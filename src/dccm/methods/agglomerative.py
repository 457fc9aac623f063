"""Agglomerative clustering of mutual neighbours (Gowda and Krishna, Pattern Recognition 10, 1978).

Two samples belong together if each is among the nearest of the other: their mutual neighbourhood value is the sum of
both ranks. Pairs are joined by rising value. Linkages that compare whole clusters join mutually nearest clusters.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from dccm.arrays import ImageShape
from dccm.config import Count, Section
from dccm.data.loader import Loader
from dccm.grouping.hierarchy import Clusters, Floats, Whole, connected, cut, join_clusters
from dccm.grouping.neighbours import ClusterMemory, Scaling, nearest
from dccm.methods.base import DirectMethod
from dccm.training.progress import OnProgress, Stage


@dataclass(frozen=True, kw_only=True)
class AgglomerativeConfig(Section):
    """Settings of agglomerative clustering."""

    linkage: Literal["mutual", "average", "ward"] = "ward"
    """What is joined first: the pair of images of least mutual neighbourhood value (the paper's), the clusters of least
    mean squared distance between their images, or those whose joining adds least to the squared distances within."""
    neighbours: Count = 20
    """Length of the lists of neighbours in which ranks are counted, for `linkage = "mutual"`."""
    components: Count = 64
    """Principal components of the pixels in which distances are taken."""
    scaling: Scaling = "none"
    """Pixels as they come, each image of unit length, or the same after the mean image was subtracted."""


class AgglomerativeMethod(DirectMethod[AgglomerativeConfig]):
    """Begin with single images, join those nearest to each other, stop at K clusters."""

    year = 1978
    citation = "Gowda and Krishna, Agglomerative Clustering Using the Concept of Mutual Nearest Neighbourhood, 1978"
    learns = "clusters of pixels"
    cost = "minutes"
    takes_vectors = True
    config_type = AgglomerativeConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: AgglomerativeConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.memory = ClusterMemory(shape, n_clusters, config.components, config.scaling)

    def fit(self, loader: Loader, on_progress: OnProgress) -> None:
        """Join until K clusters are left."""
        on_progress(Stage("principal components", 0.0))
        points = self.memory.look(loader)
        clusters = min(self.n_clusters, len(points))
        groups = np.arange(len(points))
        linkage = self.config.linkage
        if linkage == "mutual":
            count = min(self.config.neighbours, len(points) - 1)
            places, distances = nearest(points, count, lambda share: on_progress(Stage("neighbours", share)))
            groups = join_mutual(places.cpu().numpy(), distances.cpu().numpy(), clusters)
            linkage = "average"  # For what no finite value joins.
        merges = join_clusters(
            Clusters(points.cpu().numpy(), groups, linkage), lambda share: on_progress(Stage("joining", share))
        )
        self.memory.keep(torch.from_numpy(cut(merges, clusters)[groups]))


def join_mutual(places: Whole, distances: Floats, clusters: int) -> Whole:
    """Join pairs by rising mutual neighbourhood value, those of equal value by rising distance, down to K clusters.

    Args:
        places: Nearest others of each point, nearest first, (N, k).
        distances: Their distances, (N, k).
        clusters: K; more are left if lists of k neighbours link no more of them.

    Returns:
        The group of each point, (N,).
    """
    one, other, value, distance = mutual_neighbours(places, distances)
    steps = np.empty(len(value))
    steps[np.lexsort((distance, value))] = np.arange(1, len(value) + 1)
    links = sparse.csr_array((steps, (one, other)), shape=(len(places), len(places)))
    tree = minimum_spanning_tree(links).tocoo()  # What joins two groups, not what lies within one.
    first = np.argsort(tree.data)[: len(places) - clusters]
    return connected(tree.row[first], tree.col[first], len(places))


def mutual_neighbours(places: Whole, distances: Floats) -> tuple[Whole, Whole, Whole, Floats]:
    """Pairs that are in each other's lists: both places, mutual neighbourhood value (sum of ranks), distance."""
    count, length = places.shape
    one, other = np.repeat(np.arange(count), length), places.ravel()
    rank = np.tile(np.arange(1, length + 1), count)
    code, mirrored = one * count + other, other * count + one
    order = np.argsort(code)
    partner = order[np.searchsorted(code, mirrored, sorter=order).clip(max=len(code) - 1)]
    mutual = (code[partner] == mirrored) & (one < other)
    return one[mutual], other[mutual], (rank + rank[partner])[mutual], distances.ravel()[mutual]
