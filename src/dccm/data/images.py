"""Images as one array of bytes, with a name for each, and a reason for each that could not be read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from dccm.arrays import Bytes, Fit
from dccm.errors import require


class Skipped(NamedTuple):
    """A file that is not among the images."""

    path: str
    reason: str


class Duplicate(NamedTuple):
    """An image that is the same as an earlier one, pixel by pixel, as prepared."""

    path: str
    same_as: str


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
        channels <= min(height, width) or channels <= 4,
        f"images must have their channels last, (N, H, W, C), got {images.shape}. "
        "Move the axis with images.transpose(0, 2, 3, 1).",
    )
    if images.dtype == np.uint8:
        return images
    require(
        np.issubdtype(images.dtype, np.floating) or images.dtype == bool,
        f"images must be uint8 or floats in [0, 1], got {images.dtype}. Convert them with images.astype('uint8').",
    )
    low, high = float(images.min()), float(images.max())
    require(np.isfinite(low) and np.isfinite(high), "images must not hold NaN or infinite values. Replace them first.")
    require(
        low >= 0 and high <= 1,
        f"images of floats must lie in [0, 1], got values from {low:g} to {high:g}. Scale them, or pass uint8.",
    )
    return (images * 255.0).round().astype(np.uint8)


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
    grey = images.astype(np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    return grey.round().astype(np.uint8)[..., np.newaxis]


def resized(images: Bytes, side: int, fit: Fit = "crop") -> Bytes:
    """Square images of this side: the longer side is cropped to its middle, or the shorter one padded with black."""
    if images.shape[1:3] == (side, side):
        return images
    fitted = ImageOps.fit if fit == "crop" else ImageOps.pad
    planes = (Image.fromarray(image[..., channel]) for image in images for channel in range(images.shape[3]))
    squares = [np.asarray(fitted(plane, (side, side), method=Image.Resampling.BICUBIC)) for plane in planes]
    return np.ascontiguousarray(np.stack(squares).reshape(len(images), -1, side, side).transpose(0, 2, 3, 1))
