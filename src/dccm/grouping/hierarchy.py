"""Hierarchies of clusters: join what is mutually nearest, and cut the tree where K clusters are left.

Clusters are known by centre, size and spread, so memory grows with the images and not with their pairs.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dccm.grouping.neighbours import Shares

Linkage = Literal["average", "ward"]
Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def connected(one: Whole, other: Whole, count: int) -> Whole:
    """The group of each of `count` things, numbered from 0, when these pairs are joined."""
    links = sparse.csr_array((np.ones(len(one)), (one, other)), shape=(count, count))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


class Clusters:
    """Centres, sizes and spreads of clusters: all that a linkage asks for.

    Args:
        points: (N, D).
        groups: Which of M clusters each point is in, (N,).
        linkage: `average` or `ward`.
    """

    def __init__(self, points: Floats, groups: Whole, linkage: Linkage) -> None:
        self.linkage = linkage
        self.sizes = np.bincount(groups).astype(np.float32)
        totals = sparse.csr_array((np.ones_like(groups, np.float32), (groups, np.arange(len(groups)))))
        self.centres = (totals @ points / self.sizes[:, None]).astype(np.float32)
        self.squares = (self.centres**2).sum(axis=1)
        """Of the centres; infinite for a cluster that is gone."""
        self.spreads = totals @ ((points - self.centres[groups]) ** 2).sum(axis=1) / self.sizes
        """Mean squared distance of a cluster's points to its centre."""
        self.names = np.arange(len(self.sizes))
        """Number of each cluster at the beginning."""

    def costs(self, one: int) -> Floats:
        """Cost of joining one cluster with each other one, (M,): mean squared distance of their points, or Ward's."""
        squared = self.squares - self.centres @ (2 * self.centres[one]) + self.squares[one]
        squared[one] = np.inf
        if self.linkage == "ward":
            return np.asarray(squared * (self.sizes * (self.sizes[one] / (self.sizes + self.sizes[one]))))
        return np.asarray(squared + (self.spreads + self.spreads[one]))

    def join(self, one: int, other: int) -> None:
        """Let one cluster take in another."""
        size = self.sizes[one] + self.sizes[other]
        share = self.sizes[other] / size
        step = self.centres[other] - self.centres[one]
        spread = share * self.spreads[other] + (1 - share) * self.spreads[one] + share * (1 - share) * (step @ step)
        self.centres[one] += share * step
        self.sizes[one], self.spreads[one] = size, spread
        self.squares[one], self.squares[other] = self.centres[one] @ self.centres[one], np.inf

    def pack(self) -> Whole:
        """Forget clusters that are gone; the new place of each that is left."""
        left = np.isfinite(self.squares)
        for name in ("sizes", "centres", "squares", "spreads", "names"):
            setattr(self, name, getattr(self, name)[left])
        return np.cumsum(left) - 1


class Merge(NamedTuple):
    """Two clusters, by one of the first clusters in each, and what joining them cost."""

    one: int
    other: int
    cost: float


def join_clusters(clusters: Clusters, shares: Shares) -> list[Merge]:
    """Join mutually nearest clusters until one is left, by chains of nearest neighbours (Benzecri, 1982).

    From any cluster, go to its nearest, and on to the nearest of that, until two are nearest to each other. For these
    linkages the tree is the same as if the cheapest pair of all were joined each time, without looking for it.
    """
    merges: list[Merge] = []
    count = alive = len(clusters.sizes)
    chain: list[int] = []
    costs: list[float] = []  # Of each link of the chain; they fall, and a chain meets itself by rounding only.
    while alive > 1:
        if not chain:
            chain.append(int(np.isfinite(clusters.squares).argmax()))
        to_others = clusters.costs(chain[-1])
        nearest_one = int(to_others.argmin())
        if not costs or (to_others[nearest_one] < costs[-1] and nearest_one not in chain):
            chain.append(nearest_one)
            costs.append(float(to_others[nearest_one]))
            continue
        other, one = chain.pop(), chain.pop()
        merges.append(Merge(int(clusters.names[one]), int(clusters.names[other]), costs.pop()))
        clusters.join(one, other)
        costs = costs[: max(0, len(chain) - 1)]
        alive -= 1
        if alive < 0.8 * len(clusters.sizes):
            places = clusters.pack()
            chain = [int(places[place]) for place in chain]
        if len(merges) % 1000 == 0:
            shares(len(merges) / (count - 1))
    return merges


def cut(merges: list[Merge], clusters: int) -> Whole:
    """The cluster of each first cluster when only the cheapest merges are made, so that K are left."""
    cheapest = sorted(merges, key=lambda merge: merge.cost)[: len(merges) + 1 - clusters]
    one, other = (np.array([merge[side] for merge in cheapest], dtype=np.int64) for side in (0, 1))
    return connected(one, other, len(merges) + 1)
