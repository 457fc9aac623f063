"""Images as one array of bytes, with a name for each, and a reason for each that could not be read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.errors import UserError, require, visible

_AT_ONCE = 1000
"""Images that are copied at a time."""


class Skipped(NamedTuple):
    """A file that is not among the images."""

    path: str
    reason: str


class Duplicate(NamedTuple):
    """An image that is the same as an earlier one, pixel by pixel, as prepared."""

    path: str
    same_as: str


@dataclass(frozen=True)
class Origin:
    """Where images come from, and by what they are known again."""

    kind: str = "array"
    """Of the source: folder, zip archive, array, ..."""
    place: str = ""
    """Path or name of the source; empty: nowhere but in memory."""
    key: str = ""
    """Folder of the prepared images in the cache; empty: they are not kept there."""
    checksum: str = ""
    """crc32 of the pixels, in hexadecimal digits."""


@dataclass(frozen=True)
class ImageSet:
    """Images, and what belongs to each of them."""

    images: Bytes
    """(N, H, W, C); in memory, or mapped from a file."""
    names: Sequence[str]
    """A path or number for each image."""
    labels: npt.NDArray[Any] | None = None
    """True classes, if known; for evaluation alone."""
    skipped: Sequence[Skipped] = field(default_factory=list)
    duplicates: Sequence[Duplicate] = field(default_factory=list)
    splits: npt.NDArray[np.str_] | None = None
    """`train` or `test` for each image, where both are known; for evaluation alone."""
    stated: Origin = Origin()
    """What was known of the origin when the images were read; of those in memory there is no checksum yet."""

    @cached_property
    def origin(self) -> Origin:
        """Where the images come from; a checksum that is not known yet is computed when it is first asked for."""
        return self.stated if self.stated.checksum else replace(self.stated, checksum=checksum(self.images))


def checksum(images: Bytes) -> str:
    """crc32 of all pixels, in hexadecimal digits."""
    value = 0
    for start in range(0, len(images), _AT_ONCE):
        value = crc32(images[start : start + _AT_ONCE].tobytes(), value)
    return f"{value:08x}"


def require_all_read(image_set: ImageSet) -> None:
    """Refuse what was skipped: answers for fewer images than were given would stand in other rows than the images."""
    if image_set.skipped:
        way = "Leave them out, or pass what read_images makes of them, which names those that can be read."
        raise UserError(f"{unread(image_set)} {way}")


def unread(image_set: ImageSet) -> str:
    """How many images cannot be read, and why not the first of them."""
    (path, reason), count = image_set.skipped[0], len(image_set.skipped)
    return visible(f"{count:,} of {count + len(image_set.names):,} images cannot be read; the first, {path}: {reason}.")


def as_bytes(array: npt.ArrayLike) -> Bytes:
    """Check an array of images and bring it to bytes, (N, H, W, C).

    Args:
        array: (N, H, W) or (N, H, W, C); uint8, or floats in [0, 1].
    """
    images = np.asarray(array)
    require(
        images.ndim in (3, 4),
        f"images must have the shape (N, H, W) or (N, H, W, C), got {images.shape}. Reshape them.",
    )
    require(len(images) > 0, f"images must hold at least one image, got the shape {images.shape}.")
    if images.ndim == 3:
        images = images[..., np.newaxis]
    height, width, channels = images.shape[1:]
    require(
        min(height, width, channels) > 0,
        f"images must have pixels and channels, got the shape {images.shape}. Give images that hold something.",
    )
    require(
        channels <= min(height, width) or channels <= 4,
        f"images must have their channels last, (N, H, W, C), got {images.shape}. "
        "Move the axis with images.transpose(0, 2, 3, 1).",
    )
    if images.dtype == np.uint8:
        return images
    require(
        np.issubdtype(images.dtype, np.floating) or images.dtype == bool,
        f"images must be uint8 or floats in [0, 1], got {images.dtype}. {_conversion(images)}",
    )
    low, high = float(images.min()), float(images.max())
    require(np.isfinite(low) and np.isfinite(high), "images must not hold NaN or infinite values. Replace them first.")
    require(
        low >= 0 and high <= 1,
        f"images of floats must lie in [0, 1], got values from {low:g} to {high:g}. Scale them, or pass uint8.",
    )
    return (images * 255.0).round().astype(np.uint8)


def _conversion(images: npt.NDArray[Any]) -> str:
    """How to make bytes or floats of other numbers; larger ones than a byte holds would wrap."""
    if not np.issubdtype(images.dtype, np.integer):
        return "Give the values of pixels as numbers."
    low, high = int(images.min()), int(images.max())
    if low >= 0 and high <= 255:
        return "Convert them with images.astype('uint8')."
    full = np.iinfo(images.dtype).max if images.dtype.kind == "u" else max(high - low, 1)
    shifted = "images" if low >= 0 else f"(images - {low})".replace("- -", "+ ")
    return f"They go from {low} to {high}; scale them, for example with {shifted} / {full}."


def with_channels(images: Bytes, channels: int | None) -> Bytes:
    """Images with so many channels: grey to colour by repetition, colour to grey by the usual luminance weights."""
    current = images.shape[3]
    if channels is None or channels == current:
        return images
    if (current, channels) == (1, 3):
        return images.repeat(3, axis=3)
    require(
        (current, channels) == (3, 1),
        f"images must have {channels} channels for this model, got {current}. Convert them.",
    )
    # Pillow's own rounding, so that a file and an array become the same grey.
    weighed = images.astype(np.uint32) @ np.array([19595, 38470, 7471], dtype=np.uint32)
    return ((weighed + 0x8000) >> 16).astype(np.uint8)[..., np.newaxis]
