"""Where clusters lie among features, how wide they are, and how far apart: read block by block, few bytes an image."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats

Clusters = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

_VALUES = 1 << 22
"""Values of features in memory at once: 32 MB as doubles."""
_SOME = 500
"""Images by which the width of a cluster is known well enough."""


class Spread(NamedTuple):
    """The clusters in their features."""

    means: Doubles
    """(K, D); zeros for a cluster without images."""
    sizes: Clusters
    """(K,)"""

    def apart(self) -> Doubles:
        """How far the means of two clusters lie apart, (K, K).

        Infinite for a cluster with itself, and for those without images.
        """
        squares = (self.means**2).sum(axis=1)
        apart = np.sqrt(np.maximum(squares[:, None] + squares - 2 * self.means @ self.means.T, 0))
        empty = self.sizes == 0
        apart[empty], apart[:, empty] = np.inf, np.inf
        np.fill_diagonal(apart, np.inf)
        found: Doubles = np.where(np.isnan(apart), np.inf, apart)
        return found


def spread_of(features: Floats, clusters: Clusters, n_clusters: int) -> Spread:
    """Means and sizes of clusters.

    Args:
        features: (N, D), perhaps mapped from a file.
        clusters: (N,), each below K.
        n_clusters: K.
    """
    sums = np.zeros((n_clusters, features.shape[1]))
    for rows in _blocks(features):
        np.add.at(sums, clusters[rows], features[rows])
    sizes = np.bincount(clusters, minlength=n_clusters)
    return Spread(sums / np.maximum(sizes, 1)[:, None], sizes)


def gap(features: Floats, clusters: Clusters, spread: Spread, one: int, other: int) -> float:
    """How far two clusters are apart along the line through their means, over both their deviations on it.

    One even cloud that is cut in two has a gap of 1.7, and one whose middle is dense of 1.3: from 2 on something lies
    between the clusters. Nothing, infinity, where all images of each are alike.
    """
    line = spread.means[other] - spread.means[one]
    length = float(np.linalg.norm(line))
    wide = sum(_along(features, np.flatnonzero(clusters == number), line / (length or 1)) for number in (one, other))
    return length / wide if wide > 0 else np.inf


def _along(features: Floats, members: Clusters, direction: Doubles) -> float:
    """Deviation of some images of a cluster along a direction."""
    some = members[:: max(1, len(members) // _SOME)]
    return float((features[some] @ direction).std()) if len(some) else 0.0


def distances(features: Floats, clusters: Clusters, means: Doubles) -> Doubles:
    """How far each image is from the mean of its cluster, (N,)."""
    found = np.empty(len(features))
    for rows in _blocks(features):
        found[rows] = np.linalg.norm(features[rows] - means[clusters[rows]], axis=1)
    return found


def _blocks(features: Floats) -> Iterator[slice]:
    step = max(1, _VALUES // max(1, features.shape[1]))
    return (slice(start, min(start + step, len(features))) for start in range(0, len(features), step))
