"""How far a probability can be trusted, found without labels: by others who see less.

A softmax is as sure as its training made it. So others are asked: for each cluster they know the mean of its images in
a part of the features alone, and put each image to the nearest mean. An image that a part of the features puts
elsewhere is not sure. One temperature then makes the probabilities foretell what the others say.

Others see less, so they err more often than the clustering itself. They share its view of what a cluster is, so they
agree with it where features do not show the true classes. The first makes the confidence too low, the second too high.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from dccm.arrays import Floats

Clusters = npt.NDArray[np.int64]
Votes = npt.NDArray[np.float64]

OTHERS = 8
"""How many are asked."""
_FEWEST_COLUMNS = 16
"""Features that each of them sees at least, where there are so many."""
FLOOR = 1e-6
"""Smallest probability that is told from zero, so that its logarithm exists."""
_HOTTEST = 5.0
"""Largest logarithm of a temperature; the coldest is as far on the other side."""


def tempered(probabilities: Floats, temperature: float) -> Floats:
    """Probabilities with their logarithms divided by the temperature, (B, K); which one is largest stays."""
    logits = np.log(np.maximum(probabilities.astype(np.float64), FLOOR)) / temperature
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    scaled: Floats = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return scaled


def fit_temperature(probabilities: Floats, votes: Votes) -> float:
    """The temperature at which the probabilities foretell the votes best, by their mean cross-entropy.

    Args:
        probabilities: (N, K).
        votes: Share of the other clusterings that put each image into each cluster, (N, K).
    """

    def loss(logarithm: float) -> float:
        foretold = np.maximum(tempered(probabilities, float(np.exp(logarithm))), 1e-12)
        return float(-(votes * np.log(foretold)).sum(axis=1).mean())

    best = minimize_scalar(loss, bounds=(-_HOTTEST, _HOTTEST), method="bounded")
    return float(np.exp(best.x))


def votes_of_others(
    features: Floats, views: Sequence[Floats], clusters: Clusters, n_clusters: int, seed: int
) -> Iterator[Votes]:
    """What each of the others says of the images, as zeros and ones, (N, K).

    Args:
        features: Of the images, from which the others learn the clusters, (N, D).
        views: Features of the same images, perhaps perturbed, which the others are asked about in turns, (N, D) each.
        clusters: (N,).
        n_clusters: K.
        seed: Decides which features each of them sees.
    """
    for number, columns in enumerate(parts(features.shape[1], seed)):
        known, asked = features[:, columns], views[number % len(views)][:, columns]
        yield np.eye(n_clusters)[nearest_mean(known, asked, clusters, n_clusters)]


def parts(count: int, seed: int) -> list[npt.NDArray[np.int64]]:
    """The columns that each of the others sees: random parts that do not overlap, drawn anew when all are used up."""
    random = np.random.default_rng(seed)
    size = min(OTHERS, max(1, count // _FEWEST_COLUMNS))
    drawn = [part for _ in range(0, OTHERS, size) for part in np.array_split(random.permutation(count), size)]
    return drawn[:OTHERS]


def nearest_mean(known: Floats, asked: Floats, clusters: Clusters, n_clusters: int) -> Clusters:
    """The cluster with the nearest mean, among directions from the middle of all images, (N,)."""
    middle = unit_rows(known).mean(axis=0)
    known, asked = unit_rows(unit_rows(known) - middle), unit_rows(unit_rows(asked) - middle)
    sizes = np.bincount(clusters, minlength=n_clusters)
    sums = np.zeros((n_clusters, known.shape[1]))
    np.add.at(sums, clusters, known)
    means = sums / np.maximum(sizes, 1)[:, None]
    distances = (means**2).sum(axis=1) - 2 * asked @ means.T
    nearest: Clusters = np.where(sizes > 0, distances, np.inf).argmin(axis=1)
    return nearest


def unit_rows(rows: Floats) -> Floats:
    """Each row of length one; rows of zeros stay."""
    scaled: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled
