"""How many clusters: three curves over K, and one rule that takes a number from them. No label is looked at.

Each point first moves to the mean of its neighbourhood. For each K, k-means is begun from the clusters that are left
when many small ones are merged. Three things are asked of what it finds, each 1 at best and near 0 by chance:

- links: do neighbours stay together, beyond chance (modularity; Newman and Girvan, 2004)?
- separation: is the own centre nearer than the next one (silhouette of centres; Hruschka et al., 2006)?
- stability: do two halves of the images, each clustered on its own, agree on how to divide them (Tibshirani and
  Walther, 2005; Lange et al., 2004)?

With too few clusters, links are kept by chance and centres lie far from their points. With too many, clusters are cut
that belong together, in each half at another place. The product of the three is the score of K. The largest wins, and
of nearly equal ones the smallest K.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from dccm.data.loader import Loader
from dccm.grouping.hierarchy import Clusters, Floats, Whole, cut, join_clusters
from dccm.grouping.neighbours import Pixels, Shares, nearest, principal_axes

Doubles = npt.NDArray[np.float64]
Sureness = Literal["sure", "fairly sure", "not sure"]

COMPONENTS = 64
SPLITS = 5
"""Times that the images are divided into halves at random."""
_NEIGHBOURS = 20
"""Of a point at most; with few images, half as many as the smallest clusters have on average."""
_SMALL_PER_CLUSTER = 4
"""Small clusters to merge, for each of the largest K."""
_STEPS = 30
"""Of k-means at most; it begins close to where it ends."""
_EQUAL = 0.01
"""Share of the best score by which another may fall short and still count as equal."""
_SAME = 0.1
"""Share of K within which a number is no other one, and no runner-up."""
_CLOSE = 0.2
"""Share of K by which another number may differ and still say the same."""
_CLEAR = 0.05
"""Share of its score by which the best leads when it is sure."""


class Partition(NamedTuple):
    """What k-means found."""

    clusters: Whole
    """(N,)."""
    centres: Floats
    """(K, D)."""


class Curves(NamedTuple):
    """What each number of clusters says of the points."""

    candidates: list[int]
    """Numbers of clusters, rising, (M,)."""
    links: Doubles
    """(M,)."""
    separation: Doubles
    """(M,)."""
    stability: Doubles
    """For each division into halves, (SPLITS, M)."""

    def scores(self) -> Doubles:
        """Product of the three, (M,)."""
        return self._product(self.stability.mean(axis=0))

    def scores_of_splits(self) -> Doubles:
        """The same as each division into halves has it, (SPLITS, M)."""
        return self._product(self.stability)

    def _product(self, stability: Doubles) -> Doubles:
        return np.maximum(self.links, 0) * np.maximum(self.separation, 0) * np.maximum(stability, 0)


class Suggestion(NamedTuple):
    """What the curves come to."""

    number: int
    runner_up: int | None
    """The best of those that differ by more than a tenth; None if there was nothing else to choose."""
    sureness: Sureness


def numbers_between(low: int, high: int) -> list[int]:
    """The numbers of clusters that are tried: all of them up to 40, then in steps of 5 %."""
    found, number = [], low
    while number <= high:
        found.append(number)
        number += max(1, number // 20)
    return found


def points_of(loader: Loader) -> Floats:
    """What is judged: images less their mean, of length one, in 64 principal components, of length one, (N, 64)."""
    pixels = Pixels(int(np.prod(loader.images.shape[1:])), "centred").to(loader.device)
    pixels.fit(loader)
    axes = principal_axes(pixels, loader, COMPONENTS)
    return loader.over_all(lambda images: F.normalize(pixels(images) @ axes))


def judge(points: Floats, candidates: Sequence[int], seed: int, shares: Shares) -> tuple[Curves, list[Partition]]:
    """The three curves, and the clusters of all points for each number of clusters.

    Args:
        points: (N, D); at least two for each cluster in each half.
        candidates: Numbers of clusters, rising, (M,).
        seed: Decides halves and first centres.
        shares: Called with the share of the work that is done.
    """
    random = np.random.default_rng(seed)
    count = max(3, min(_NEIGHBOURS, len(points) // (2 * candidates[-1])))
    neighbours = _neighbours(points, count)
    whole = list(partitions(smoothed(points, neighbours), candidates, seed, _part(shares, 0)))
    stability = np.empty((SPLITS, len(candidates)))
    for split in range(SPLITS):
        halves = [points[rows] for rows in np.array_split(random.permutation(len(points)), 2)]
        # In half as many points, a neighbourhood of the same size holds half as many.
        one, other = (smoothed(half, _neighbours(half, max(2, count // 2))) for half in halves)
        stability[split] = agreements(one, other, candidates, seed + split, _part(shares, 1 + split))
    links = np.array([kept_links(found.clusters, neighbours) for found in whole])
    separations = np.array([separation(points, found.clusters) for found in whole])
    return Curves(list(candidates), links, separations, stability), whole


def _neighbours(points: Floats, count: int) -> Whole:
    """Places of the nearest others of each point, (N, count)."""
    places: Whole = nearest(torch.from_numpy(points), min(count, len(points) - 1))[0].numpy()
    return places


def smoothed(points: Floats, neighbours: Whole) -> Floats:
    """Each point as the mean of itself and its neighbours, of length one: one step of mean shift."""
    sums = points.copy()
    for places in neighbours.T:
        sums += points[places]
    means: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def _part(shares: Shares, place: int) -> Shares:
    """Called with the share of one of the parts of equal size: all images, then each division into halves."""
    return lambda share: shares((place + share) / (1 + SPLITS))


def partitions(points: Floats, candidates: Sequence[int], seed: int, shares: Shares) -> Iterator[Partition]:
    """k-means for each number of clusters, begun from the merged small clusters."""
    small = min(len(points), _SMALL_PER_CLUSTER * candidates[-1])
    groups = np.unique(_kmeans(points, small, seed).clusters, return_inverse=True)[1]
    merges = join_clusters(Clusters(points, groups, "ward"), lambda _: None)
    for rank, number in enumerate(candidates, start=1):
        merged = cut(merges, min(number, len(merges) + 1))[groups]
        centres = Clusters(points, merged, "ward").centres
        yield _kmeans(points, len(centres), seed, centres)
        shares(rank / len(candidates))


def _kmeans(points: Floats, number: int, seed: int, start: Floats | None = None) -> Partition:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    begin = "k-means++" if start is None else start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # Copies of few images need fewer clusters.
        found = KMeans(number, init=begin, n_init=1, max_iter=_STEPS, random_state=seed).fit(points)
    return Partition(found.labels_.astype(np.int64), found.cluster_centers_)


def kept_links(clusters: Whole, neighbours: Whole) -> float:
    """Share of links to nearest others that stay within a cluster, less the share that would by chance.

    Args:
        clusters: (N,).
        neighbours: Places of the nearest others of each point, (N, k).
    """
    kept = float((clusters[neighbours] == clusters[:, None]).mean())
    return kept - float(((np.bincount(clusters) / len(clusters)) ** 2).sum())


def separation(points: Floats, clusters: Whole) -> float:
    """Mean of 1 - a / b: distance a of a point to the centre of its own cluster, b to the nearest other one."""
    groups = np.unique(clusters, return_inverse=True)[1]
    centres = Clusters(points, groups, "ward").centres
    if len(centres) < 2:
        return 0.0
    squared = (points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * points @ centres.T
    rows = np.arange(len(points))
    own = squared[rows, groups]
    squared[rows, groups] = np.inf
    ratio = np.maximum(own, 0) / np.maximum(squared.min(axis=1), 1e-12)
    return float((1 - np.sqrt(ratio)).clip(-1, 1).mean())


def agreements(one: Floats, other: Floats, candidates: Sequence[int], seed: int, shares: Shares) -> list[float]:
    """How far two halves agree, for each number of clusters.

    Adjusted Rand index of the clusters that one half has of itself and those that the centres of the other give it,
    mean of both ways.
    """
    from sklearn.metrics import adjusted_rand_score

    found = []
    for ours, theirs in zip(
        partitions(one, candidates, seed, lambda _: None), partitions(other, candidates, seed, shares), strict=True
    ):
        there = adjusted_rand_score(theirs.clusters, _nearest_centre(other, ours.centres))
        back = adjusted_rand_score(ours.clusters, _nearest_centre(one, theirs.centres))
        found.append((there + back) / 2)
    return found


def _nearest_centre(points: Floats, centres: Floats) -> Whole:
    """The cluster of each point, (N,)."""
    places: Whole = ((centres**2).sum(axis=1) - 2 * points @ centres.T).argmin(axis=1)
    return places


def suggest(curves: Curves) -> Suggestion:
    """The number of clusters that the curves speak for, what else they speak for, and how sure that is."""
    scores, numbers = curves.scores(), np.array(curves.candidates)
    best = _best(scores)
    another = np.flatnonzero(np.abs(numbers - numbers[best]) > _SAME * numbers[best])
    runner_up = another[scores[another].argmax()] if len(another) else None
    others = np.array([numbers[_best(of_split)] for of_split in curves.scores_of_splits()])
    agreeing = float((np.abs(others - numbers[best]) <= _CLOSE * numbers[best]).mean())
    second = 0.0 if runner_up is None else float(scores[runner_up])
    sureness = _sureness(agreeing, float(scores[best]), second)
    return Suggestion(int(numbers[best]), None if runner_up is None else int(numbers[runner_up]), sureness)


def _best(scores: Doubles) -> int:
    """The first that is as good as any."""
    return int((scores >= (1 - _EQUAL) * scores.max()).argmax())


def _sureness(agreeing: float, best: float, second: float) -> Sureness:
    """In words: sure if all halves say the same and nothing else comes close."""
    if best > 0 and agreeing == 1 and second <= (1 - _CLEAR) * best:
        return "sure"
    return "fairly sure" if best > 0 and agreeing > 0.5 else "not sure"
