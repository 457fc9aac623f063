"""Images of any size brought to one: by the same steps whether they come as files or as an array."""

from collections.abc import Callable
from numbers import Integral
from typing import Literal, get_args

import numpy as np
from PIL import Image, ImageOps

from dccm.arrays import LARGEST_SIDE, SMALLEST_SIDE, USUAL_SIDES, Bytes, Fit
from dccm.errors import require

Size = tuple[int, int]
"""Height and width in pixels."""
Interpolation = Literal["bicubic", "bilinear", "lanczos", "nearest", "box", "hamming"]
"""How pixels between pixels are made."""


def _stretch(image: Image.Image, size: Size, method: Image.Resampling) -> Image.Image:
    return image.resize(size, method)


# Pillow writes a size as width and height.
_WAYS: dict[Fit, Callable[[Image.Image, Size, Image.Resampling], Image.Image]] = {
    "crop": ImageOps.fit,
    "pad": ImageOps.pad,
    "stretch": _stretch,
}


def as_size(image_size: int | Size) -> Size:
    """Height and width of what the user calls the size of an image: a side, or both of them."""
    height, width = (image_size, image_size) if isinstance(image_size, Integral) else image_size  # type: ignore[misc]
    require_size((height, width))
    require(
        max(height, width) <= LARGEST_SIDE,
        f"image_size must be {LARGEST_SIDE} pixels at most, got {max(height, width)}. "
        f"Take {', '.join(map(str, USUAL_SIDES[:-1]))} or {USUAL_SIDES[-1]}.",
    )
    return int(height), int(width)


def require_size(size: Size) -> None:
    """Refuse a size that no network takes."""
    require(
        min(size) >= SMALLEST_SIDE,
        f"image_size must be at least {SMALLEST_SIDE} pixels, got {min(size)}. "
        f"Take {', '.join(map(str, USUAL_SIDES[:-1]))} or {USUAL_SIDES[-1]}.",
    )


def require_fit(fit: str) -> None:
    """Refuse an unknown way to fit images."""
    *others, last = (f"'{name}'" for name in get_args(Fit))
    require(fit in get_args(Fit), f"fit must be {', '.join(others)} or {last}, got '{fit}'.")


def fitted(image: Image.Image, size: Size, fit: Fit, interpolation: Interpolation = "bicubic") -> Image.Image:
    """One image of this height and width."""
    height, width = size
    if image.size == (width, height):
        return image
    # All are antialiased; to shrink, a Hamming window does with half the work of a bicubic one.
    shrinks = image.width > width and image.height > height
    chosen = "hamming" if shrinks and interpolation == "bicubic" else interpolation
    return _WAYS[fit](image, (width, height), Image.Resampling[chosen.upper()])


def resized(images: Bytes, size: Size, fit: Fit = "crop", interpolation: Interpolation = "bicubic") -> Bytes:
    """Images (N, H, W, C) of this height and width; they may have any number of channels."""
    if images.shape[1:3] == size:
        return images
    made = np.empty((len(images), *size, images.shape[3]), dtype=np.uint8)
    for image, target in zip(images, made, strict=True):
        if images.shape[3] == 3:
            target[:] = np.asarray(fitted(Image.fromarray(image), size, fit, interpolation))
            continue
        for channel in range(images.shape[3]):
            plane = Image.fromarray(image[..., channel])
            target[..., channel] = np.asarray(fitted(plane, size, fit, interpolation))
    return made
