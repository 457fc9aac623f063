"""Images far from everything: their distance to the tenth nearest of a sample is far above what is usual.

Usual is the median over all images; far is more than three deviations beyond, by the median deviation, which a few odd
images do not move. How many outliers there are is up to the images: there may be none.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats
from dccm.grouping.agreement import unit_rows

_NEIGHBOUR = 10
_DEVIATIONS = 3.0
_NORMAL = 1.4826
"""Standard deviation of a normal distribution in units of its median deviation."""
_SMALLEST = 1e-3
"""Deviation that counts at least: among copies of one image, one that differs by a pixel is not odd."""
_MOST_POINTS, _MOST_VALUES = 2000, 1 << 22
"""Bounds of a sample: 8 MB in half precision."""
_AT_ONCE = 4096


class Sample(NamedTuple):
    """Some images, and how far from them is far."""

    points: Floats
    """Of unit length, (M, D)."""
    far: float
    """Distance to the tenth nearest beyond which an image is an outlier."""


def sample_of(features: Floats, seed: int) -> Sample:
    """A sample that stands for all images.

    Args:
        features: Of the images, (N, D).
        seed: Decides which ones are drawn, if they are more than are kept.
    """
    most = max(1, min(_MOST_POINTS, _MOST_VALUES // features.shape[1]))
    rows = np.sort(np.random.default_rng(seed).permutation(len(features))[:most])
    points = unit_rows(features[rows]).astype(np.float16).astype(np.float32)  # As a file keeps them.
    return Sample(points, usual_end(distances(features, points)))


def distances(features: Floats, points: Floats) -> Floats:
    """Distance of each feature, brought to unit length, to the tenth nearest point, (N,)."""
    rank = min(_NEIGHBOUR, len(points)) - 1
    found = np.empty(len(features), np.float32)
    for start in range(0, len(features), _AT_ONCE):
        rows = unit_rows(features[start : start + _AT_ONCE].astype(np.float32))
        nearness = np.partition(-(rows @ points.T), rank, axis=1)[:, rank]
        found[start : start + len(rows)] = np.sqrt(np.maximum(2 + 2 * nearness, 0))
    return found


def usual_end(values: Floats) -> float:
    """The median and three deviations more."""
    middle = np.median(values)
    deviation = _NORMAL * np.median(np.abs(values - middle))
    return float(middle + _DEVIATIONS * max(deviation, _SMALLEST))


def are_far(features: Floats, sample: Sample) -> npt.NDArray[np.bool_]:
    """Whether each image is an outlier, (N,)."""
    return distances(features, sample.points) > sample.far
