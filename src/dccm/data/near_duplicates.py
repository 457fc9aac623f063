"""Images that are nearly the same: another size or quality of one file, or two shots of one moment.

Each image is looked at as 16 x 16 grey squares, less their mean and of length one. Nearly the same are two images whose
squares correlate by 0.99 or more and are about as bright. In the first twelve principal components distances can only
be smaller, so a tree of these places finds all pairs without comparing each image with each.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes, Floats
from dccm.data.images import Duplicate

SEARCHED = 100_000
"""Images that are looked at, at most; of more, the first ones."""
_SIDE, _COMPONENTS = 16, 12
_CORRELATION = 0.99
_BRIGHTNESS = 12.0
"""Largest difference of the mean levels, of 255."""
_CONTRAST = 4.0
"""Deviation of the levels below which an image is too even to be told from others."""
_NEIGHBOURS = 4
"""Of each image that are compared in full."""
_VALUES = 1 << 22
Rows = npt.NDArray[np.int64]


class Squares(NamedTuple):
    """What is compared of images."""

    rows: Rows
    """Images that are not too even, (M,)."""
    directions: Floats
    """Of length one, (M, 256)."""
    levels: Floats
    """Mean level, (M,)."""


def near_duplicates(images: Bytes, names: Sequence[str], same: Sequence[Duplicate] = ()) -> list[Duplicate]:
    """Each image that is nearly the same as an earlier one, with the one that is most alike.

    Args:
        images: (N, H, W, C).
        names: Of each.
        same: Images that are exactly the same as others, which are left out.
    """
    if min(images.shape[1:3]) < _SIDE:  # Too few pixels: different things look alike.
        return []
    known = {pair.path for pair in same}
    squares = _squares(images[:SEARCHED], [name not in known for name in names[:SEARCHED]])
    if len(squares.rows) < 2:
        return []
    return [Duplicate(names[int(one)], names[int(other)]) for one, other in _pairs(squares)]


def _pairs(squares: Squares) -> Iterator[tuple[int, int]]:
    """Rows of images and of the earlier image that each is most like."""
    from scipy.spatial import KDTree

    directions, levels, rows = squares.directions, squares.levels, squares.rows
    places = _components(directions)
    reach = float(np.sqrt(2 - 2 * _CORRELATION))
    neighbours = min(_NEIGHBOURS + 1, len(rows))
    _, found = KDTree(places).query(places, k=neighbours, distance_upper_bound=reach)
    for one, others in enumerate(found):
        earlier = others[others < one]  # Those that are missing have a number beyond the last.
        near = earlier[np.abs(levels[earlier] - levels[one]) <= _BRIGHTNESS]
        alike = directions[near] @ directions[one]
        if len(near) and alike.max() >= _CORRELATION:
            yield int(rows[one]), int(rows[near[int(alike.argmax())]])


def _components(directions: Floats) -> Floats:
    """Places on the axes along which a sample of the images varies most, (M, up to 12)."""
    sample = directions[:: max(1, len(directions) // 2048)]
    axes = np.linalg.svd(sample - sample.mean(axis=0), full_matrices=False)[2][:_COMPONENTS]
    places: Floats = directions @ axes.T
    return places


def _squares(images: Bytes, wanted: Sequence[bool]) -> Squares:
    step = max(1, _VALUES // int(np.prod(images.shape[1:])))
    starts = range(0, len(images), step)
    levels = np.concatenate([_grey_squares(np.asarray(images[start : start + step])) for start in starts])
    means, deviations = levels.mean(axis=1), levels.std(axis=1)
    rows = np.flatnonzero((deviations >= _CONTRAST) & np.array(wanted))
    centred = levels[rows] - means[rows, None]
    return Squares(rows, centred / np.linalg.norm(centred, axis=1, keepdims=True), means[rows])


def _grey_squares(images: Bytes) -> Floats:
    """Mean levels of 16 x 16 parts of each image, (B, 256)."""
    grey = images.mean(axis=3, dtype=np.float32)
    for axis in (1, 2):
        starts = np.arange(_SIDE) * grey.shape[axis] // _SIDE
        widths = np.diff([*starts, grey.shape[axis]]).reshape((-1, 1) if axis == 1 else (-1,))
        grey = np.add.reduceat(grey, starts, axis=axis) / widths
    found: Floats = grey.reshape(len(images), -1).astype(np.float32)
    return found
