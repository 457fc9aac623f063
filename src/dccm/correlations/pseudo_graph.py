"""Which pairs of images surely share a cluster: similarity, pseudo-graph, its partition and its loss."""

from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.errors import require

GraphLoss = Literal["cross_entropy", "contrastive"]

SaturatedPairs = Literal["rest", "learn"]
"""What pairs do whose similarity is next to 0 or 1: give no gradient any more, or learn on."""

_NEXT = 1e-6
"""How near to 0 and 1 that is; it also keeps slopes bounded."""


def similarity(prediction: Tensor) -> Tensor:
    """Cosine similarity S of all pairs of prediction features.

    Args:
        prediction: Prediction features z, (B, K).

    Returns:
        (B, B), in [0, 1] because predictions are not negative.
    """
    with torch.autocast(prediction.device.type, enabled=False):  # Whether cosines near 1 differ is what is asked.
        direction = F.normalize(prediction, dim=1)
        # Rounding can push a cosine past 1.
        return (direction @ direction.T).clamp(0, 1)


def pseudo_graph(similarity: Tensor, threshold: float) -> Tensor:
    """Link the pairs that surely share a cluster (W, Eq. (2)).

    Args:
        similarity: Cosine similarity of the prediction features, (B, B).
        threshold: The paper's thres_1; higher means fewer and surer links.

    Returns:
        (B, B) matrix of zeros and ones; no gradient flows through it.
    """
    return (similarity.detach() >= threshold).to(similarity.dtype)


def pseudo_graph_loss(
    prediction: Tensor, graph: Tensor, *, kind: GraphLoss = "cross_entropy", saturated: SaturatedPairs = "rest"
) -> Tensor:
    """Make linked pairs alike and the others different (L_PG, Eq. (3)), mean over all pairs.

    Args:
        prediction: Prediction features, (B, K); the gradient flows into them.
        graph: Pseudo-graph W of the same images, (B, B).
        kind: Binary cross-entropy on the similarity, or the contrastive loss of the paper's footnote on the distance.
        saturated: See `pair_cross_entropy`.
    """
    if kind == "contrastive":
        return contrastive_loss(prediction, graph)
    return pair_cross_entropy(similarity(prediction), graph, saturated)


def pair_cross_entropy(
    similarity: Tensor, alike: Tensor, saturated: SaturatedPairs, weight: Tensor | None = None
) -> Tensor:
    """Binary cross-entropy of the similarity, mean over all pairs.

    Args:
        similarity: In [0, 1], (B, B).
        alike: 1 for pairs that belong together, else 0, (B, B).
        saturated: Whether pairs whose similarity is next to 0 or 1 still have a gradient.
        weight: Of each pair, (B, B); None: 1.
    """
    if saturated == "rest":
        return F.binary_cross_entropy(similarity.clamp(_NEXT, 1 - _NEXT), alike, weight)
    each = -(alike * (similarity + _NEXT).log() + (1 - alike) * (1 - similarity + _NEXT).log())
    return (each if weight is None else weight * each).mean()


def contrastive_loss(prediction: Tensor, graph: Tensor, margin: float = 2**0.5) -> Tensor:
    """Squared distance of linked pairs, squared shortfall from the margin of the others; mean over all pairs.

    The margin is the distance of two different one-hot vectors, so the optimum is the same as for the cross-entropy.
    """
    squared = (prediction.unsqueeze(1) - prediction.unsqueeze(0)).square().sum(2)
    # The square root has no slope at 0, where every diagonal entry lies.
    shortfall = (margin - squared.clamp_min(_NEXT).sqrt()).clamp_min(0)
    return (graph * squared + (1 - graph) * shortfall.square()).mean()


class Partition(NamedTuple):
    """A division of all samples into K parts."""

    parts: Tensor
    """Part of each sample, (N,); parts are numbered in the order in which they first appear."""
    threshold: float
    """Pairs more similar than this (Eq. (4)) connect exactly these parts, unless the weights have ties."""


def k_partition(similarity: Tensor, n_parts: int) -> Partition:
    """Cut the similarity graph at the threshold that leaves exactly K parts (Lemma 1, Eq. (4)).

    Raising the threshold removes edges from the weakest up; a part splits when an edge of the maximum spanning tree
    goes. So the K parts are what remains of that tree without its K - 1 weakest edges. Of edges with equal weight the
    one with the smaller sample numbers goes first, which also gives K parts where the lemma's distinct weights fail.

    Args:
        similarity: Symmetric weights of all pairs, (N, N).
        n_parts: K, from 1 to N.
    """
    count = len(similarity)
    require(1 <= n_parts <= count, f"n_parts must lie in [1, {count}], the number of samples, got {n_parts}.")
    require(bool(similarity.isfinite().all()), "similarity must hold numbers only, got NaN or infinity. Replace them.")
    ends, weights = _maximum_spanning_tree(similarity.detach().cpu().numpy())
    weakest_first = np.lexsort((ends[:, 1], ends[:, 0], weights))
    removed, kept = np.split(weakest_first, [n_parts - 1])
    threshold = float(weights[removed[-1]]) if len(removed) else float("-inf")
    return Partition(torch.from_numpy(_connected(count, ends[kept])), threshold)


def same_partition(parts: Tensor) -> Tensor:
    """The transitive relation of a partition (δ, Eq. (5)): 1 where two samples lie in the same part, (N, N)."""
    return (parts.unsqueeze(0) == parts.unsqueeze(1)).float()


def _maximum_spanning_tree(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prim's algorithm on a dense matrix: N steps over one row each, no sorting of N² edges.

    Returns:
        Both ends of each edge, the smaller number first, (N - 1, 2), and the edges' weights, (N - 1,).
    """
    count = len(weights)
    reach = weights[0].astype(np.float64)
    source = np.zeros(count, dtype=np.int64)
    reach[0] = -np.inf
    outside = np.ones(count, dtype=bool)
    outside[0] = False
    ends = np.empty((count - 1, 2), dtype=np.int64)
    values = np.empty(count - 1)
    for step in range(count - 1):
        new = int(reach.argmax())
        ends[step] = sorted((int(source[new]), new))
        values[step] = reach[new]
        outside[new] = False
        closer = outside & (weights[new] > reach)
        source[closer] = new
        reach[closer] = weights[new][closer]
        reach[new] = -np.inf
    return ends, values


def _connected(count: int, edges: np.ndarray) -> np.ndarray:
    """Number of the connected part of each sample, in order of first appearance."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    _, parts = connected_components(links, directed=False)
    _, first, inverse = np.unique(parts, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[first.argsort()] = np.arange(len(first))
    return rank[inverse]
