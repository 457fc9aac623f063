"""Rows of numbers, (N, F), as scikit-learn has them: what they are told by, and the images that they become."""

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.arrays import SMALLEST_SIDE, Bytes
from dccm.errors import require

Rows = dict[str, Any]
"""How rows become images: how many numbers each has, the lowest and the highest of all when it was decided."""

_NAMED = ("O", "U", "T")
"""Kinds of arrays that hold paths or pictures rather than numbers."""


def _holds_numbers(things: Sequence[Any]) -> bool:
    """Whether lists hold numbers, or arrays of one shape, rather than files or pictures."""
    if things and all(isinstance(thing, np.ndarray) for thing in things):
        return len({thing.shape for thing in things}) == 1
    first: Any = things
    while isinstance(first, list | tuple) and first:
        first = first[0]
    return isinstance(first, list | tuple | Number | np.generic)


def _is_like_array(thing: Any) -> bool:
    if isinstance(thing, list | tuple):
        return _holds_numbers(thing)
    return hasattr(thing, "ndim") or hasattr(thing, "__array__")


def _axes(thing: Any) -> int:
    return int(thing.ndim if hasattr(thing, "ndim") else np.asarray(thing).ndim)


def is_rows(thing: Any) -> bool:
    """Whether these are rows of numbers, rather than images, or a column of paths."""
    if not _is_like_array(thing) or _axes(thing) > 2:
        return False
    named = getattr(getattr(thing, "dtype", None), "kind", "") in _NAMED
    return not (_axes(thing) == 1 and named)


def plain(thing: Any) -> Any:
    """Whatever is like an array as one; tensors keep their channels first, and columns of paths stay what they are."""
    if not _is_like_array(thing) or hasattr(thing, "detach") or _axes(thing) == 1:
        return thing
    return np.asarray(thing)


def require_like(images: Any, rows: Rows | None, who: str) -> None:
    """Refuse rows for a model of images, images for one of rows, and rows of another length.

    Args:
        images: What the model is asked about.
        rows: How its rows became images; None: it was trained on images.
        who: The estimator; scikit-learn wants its name in the sentence.
    """
    if rows is None:
        require(not is_rows(images), "The model was trained on images, got rows of numbers. Reshape them.")
        return
    known = rows["features"]
    require(is_rows(images), f"The model was trained on rows of {known} numbers, got images. Flatten them.")
    shape = np.shape(plain(images))
    require(
        len(shape) != 2 or shape[1] == known,
        f"X has {shape[-1] if shape else 0} features, but {who} is expecting {known} features as input: the images had "
        "another size in fit. Bring them to that size before they are flattened.",
    )


def squares(numbers: npt.NDArray[np.float64], rows: Rows) -> Bytes:
    """Flattened images as square ones, enlarged by whole factors to what the networks need at least."""
    low, high = rows["low"], rows["high"]
    levels = ((numbers - low) / max(high - low, 1e-12)).clip(0, 1) * 255
    side = int(np.ceil(np.sqrt(numbers.shape[1])))
    canvas = np.zeros((len(numbers), side * side), dtype=np.uint8)
    canvas[:, : numbers.shape[1]] = levels.round()
    factor = -(-SMALLEST_SIDE // side)
    return canvas.reshape(-1, side, side, 1).repeat(factor, axis=1).repeat(factor, axis=2)
