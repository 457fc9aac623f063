"""The embedding in few dimensions: what lies near what, where it is on the map, how a cluster falls into parts.

Distances between thousands of numbers are those between their first few dozen principal components, nearly; the
components of a sample are those of all, nearly. So 60,000 images take a few megabytes, and a search milliseconds.
"""

import mmap
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats

_COMPONENTS = 64
_SAMPLE = 2048
_AT_ONCE = 4096
_SPREAD = 99.0
"""Percentile of the places that the map is scaled by: one far point must not crush the rest."""


class Space:
    """The features of all images, each of length one, on their principal components.

    Args:
        features: (N, D), mapped from the file.
    """

    def __init__(self, features: Floats) -> None:
        from sklearn.utils.extmath import randomized_svd

        generator = np.random.default_rng(0)
        rows = np.sort(generator.choice(len(features), min(_SAMPLE, len(features)), replace=False))
        sample = _directions(np.asarray(features[rows]))
        self._mean = sample.mean(axis=0)
        kept = min(_COMPONENTS, *sample.shape)
        self._axes: Floats = randomized_svd(sample - self._mean, kept, random_state=0)[2].T.astype(np.float32)
        self.points: Floats = np.empty((len(features), kept), np.float32)
        for block in _blocks(len(features)):
            self.points[block] = self._placed(features[block])
            _give_back(features)
        self._squares: Floats = np.einsum("nd,nd->n", self.points, self.points)

    def _placed(self, features: Floats) -> Floats:
        placed: Floats = (_directions(np.asarray(features)) - self._mean) @ self._axes
        return placed

    def map(self) -> Floats:
        """Two numbers for each image, mostly within -1 and 1, (N, 2)."""
        flat = self.points[:, :2] if self.points.shape[1] > 1 else np.repeat(self.points, 2, axis=1)
        return scaled(flat)

    def distances(self, row: int) -> Floats:
        """How far each image is from one of them, (N,)."""
        return self._far(self.points[row])

    def distances_of(self, feature: Floats) -> Floats:
        """How far each image is from what has this feature, (D,)."""
        return self._far(self._placed(feature[np.newaxis])[0])

    def _far(self, point: Floats) -> Floats:
        far: Floats = self.points @ point
        far *= -2
        far += self._squares + point @ point
        return np.sqrt(np.maximum(far, 0, out=far), out=far)

    def parts(self, rows: npt.NDArray[np.int64], count: int) -> list[npt.NDArray[np.int64]]:
        """Some images in so many groups, the largest first, by k-means."""
        from sklearn.cluster import KMeans

        labels = KMeans(count, n_init=4, random_state=0).fit_predict(self.points[rows])
        groups = [rows[labels == label] for label in range(count)]
        return sorted((group for group in groups if len(group)), key=len, reverse=True)


def scaled(places: Floats) -> Floats:
    """Places on a map, mostly within -1 and 1."""
    low, high = np.percentile(places, (100 - _SPREAD, _SPREAD), axis=0)
    scale = float((high - low).max() / 2) or 1.0
    made: Floats = np.ascontiguousarray((places - (low + high) / 2) / scale, dtype="<f4")
    return made


def _give_back(features: Floats) -> None:
    """Let go of the pages of a mapped file that were read; those of a million features would be a gigabyte."""
    mapped = getattr(features, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _directions(features: Floats) -> Floats:
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    directions: Floats = np.nan_to_num(features / np.maximum(lengths, 1e-12))
    return directions


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + _AT_ONCE, count)) for start in range(0, count, _AT_ONCE))
