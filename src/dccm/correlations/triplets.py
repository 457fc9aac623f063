"""Positive and negative partners taken from the pseudo-graph: the four strategies of Table 6.

All of it is matrix work on a whole mini-batch. Ties are decided by the generator, never by the order of the images.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

PairStrategy = Literal["nearest+random", "nearest+farthest", "random+random", "top_n+random"]

_NEVER = -1.0
"""Below every similarity and every uniform draw."""


class Pairs(NamedTuple):
    """Pairs of an anchor, which gives the deep feature, and a partner, which gives the shallow map."""

    anchor: Tensor
    """(M,) positions in the mini-batch."""
    partner: Tensor
    """(M,) positions in the mini-batch."""
    weight: Tensor
    """(M,) 1, or 0 for a pair that does not exist."""


def draw_pairs(
    similarity: Tensor, graph: Tensor, strategy: PairStrategy, negatives: int, generator: torch.Generator
) -> tuple[Pairs, Pairs]:
    """Positive and negative pairs of a mini-batch by one of the strategies of Table 6.

    Args:
        similarity: S of the mini-batch, (B, B).
        graph: W of the mini-batch, (B, B).
        strategy: "positive+negative" rule.
        negatives: Negative partners of each sample.
        generator: On the device of the matrices.
    """
    positive, negative = strategy.split("+")
    if positive == "top_n":
        positives = top_pairs(similarity, graph, generator)
    else:
        positives = positive_partner(similarity, graph, positive == "nearest", generator)
    return positives, negative_partners(similarity, graph, negatives, negative == "farthest", generator)


def positive_partner(similarity: Tensor, graph: Tensor, nearest: bool, generator: torch.Generator) -> Pairs:
    """For each sample another one that it is linked to, the nearest or any; itself if it is linked to no other."""
    linked = (graph > 0) & ~_diagonal(graph)
    draw = _uniform_like(similarity, generator)
    if nearest:
        linked = linked & _is_largest(similarity, linked)
    anchor = torch.arange(len(graph), device=graph.device)
    partner = torch.where(linked, draw, _NEVER).argmax(dim=1)
    return Pairs(anchor, torch.where(linked.any(dim=1), partner, anchor), torch.ones_like(draw[0]))


def negative_partners(
    similarity: Tensor, graph: Tensor, count: int, farthest: bool, generator: torch.Generator
) -> Pairs:
    """For each sample `count` different unlinked ones, the farthest or any; weight 0 if there are too few."""
    size = len(graph)
    # Rounding can leave a sample unlinked to itself when the threshold is 1.
    unlinked = (graph == 0) & ~_diagonal(graph)
    count = min(count, size - 1)
    # A draw decides among equal similarities: the stable sort keeps the order of the shuffled columns.
    shuffle = _uniform_like(similarity, generator).argsort(dim=1)
    score = torch.where(unlinked, 2 - similarity, torch.zeros_like(similarity))
    if not farthest:
        score = unlinked.to(similarity.dtype)
    best = score.gather(1, shuffle).sort(dim=1, descending=True, stable=True)
    partner = shuffle.gather(1, best.indices[:, :count])
    anchor = torch.arange(size, device=graph.device).unsqueeze(1).expand(-1, count)
    return Pairs(anchor.flatten(), partner.flatten(), (best.values[:, :count] > 0).to(similarity.dtype).flatten())


def top_pairs(similarity: Tensor, graph: Tensor, generator: torch.Generator) -> Pairs:
    """The B most similar linked pairs of the whole batch; samples' own maps fill up when there are fewer."""
    size = len(graph)
    above = torch.ones_like(graph, dtype=torch.bool).triu(1)
    score = torch.where(above & (graph > 0), similarity, _NEVER).flatten()
    shuffle = torch.randperm(size * size, generator=generator, device=graph.device)
    best = score[shuffle].sort(descending=True, stable=True)
    chosen = shuffle[best.indices[:size]]
    exists = best.values[:size] > _NEVER
    own = torch.randperm(size, generator=generator, device=graph.device)
    swapped = torch.randint(0, 2, (size,), generator=generator, device=graph.device) > 0
    one, other = chosen // size, chosen % size
    anchor = torch.where(exists, torch.where(swapped, other, one), own)
    partner = torch.where(exists, torch.where(swapped, one, other), own)
    return Pairs(anchor, partner, torch.ones_like(similarity[0]))


def own_pairs(size: int, device: torch.device) -> Pairs:
    """Each sample with itself: the instance-level pairs that the triplets extend."""
    own = torch.arange(size, device=device)
    return Pairs(own, own, torch.ones(size, device=device))


def joined(first: Pairs, second: Pairs) -> Pairs:
    """Both lists of pairs as one."""
    return Pairs(*(torch.cat(both) for both in zip(first, second, strict=True)))


def _diagonal(graph: Tensor) -> Tensor:
    return torch.eye(len(graph), dtype=torch.bool, device=graph.device)


def _is_largest(similarity: Tensor, allowed: Tensor) -> Tensor:
    """Where a row reaches its largest allowed value; several places if they tie."""
    values = torch.where(allowed, similarity, _NEVER)
    return values == values.max(dim=1, keepdim=True).values


def _uniform_like(values: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(values.shape, generator=generator, device=values.device, dtype=values.dtype)
