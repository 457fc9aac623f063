"""One image, whatever its kind, as a few bytes of one size.

Any bytes may be called an image. Only formats of this list are tried, none of which runs programs; what cannot be read
raises an exception whose text is the reason.
"""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from dccm.arrays import Bytes, Fit
from dccm.data.resize import Size, fitted, require_fit, require_size
from dccm.errors import require

Image.init()  # Here, because threads that find plugins half loaded fail.
FORMATS = tuple(
    name for name in ("JPEG", "MPO", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM", "AVIF") if name in Image.OPEN
)
"""What Pillow may take a file for; not every build knows all of them."""
SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
    | {".pnm", ".avif"}
)
MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"BM", b"GIF8", b"II*\0", b"MM\0*", b"P4\n", b"P5\n", b"P6\n")
"""How files of these formats begin."""
MOST_PIXELS = 100_000_000
MOST_BYTES = 512 * 1024 * 1024
"""Of one file; a larger one is no picture that a network of 96 pixels needs."""

_REDUCED = 1.5
"""JPEG files are decoded at 1/2, 1/4 or 1/8 of their size if that is still this many times the wanted size."""
_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_LYING = frozenset({5, 6, 7, 8})
"""Turns that make rows of columns."""


@dataclass(frozen=True)
class Preparation:
    """What every image is brought to."""

    size: Size
    """Height and width in pixels."""
    fit: Fit = "crop"
    channels: int | None = None
    """1 for grey, 3 for colour; None: grey if every image is, else colour."""

    def __post_init__(self) -> None:
        require_size(self.size)
        require_fit(self.fit)
        require(
            self.channels in (None, 1, 3),
            f"channels must be 1 for grey, 3 for colour, or None, got {self.channels}. Leave it out.",
        )


def decode(item: Path | bytes | npt.NDArray[Any] | Image.Image, wanted: Preparation) -> Bytes:
    """One image as bytes, (height, width, 1 or 3), upright."""
    with _opened(item, max(wanted.size)) as image:
        return _brought(image, wanted)


def picture(item: Path | bytes | npt.NDArray[Any] | Image.Image, largest: int | None = None) -> Image.Image:
    """One image for people to look at: upright, 8 bits, grey or colour, in its own proportions.

    Args:
        item: The image.
        largest: Its longer side is brought to this, if it is longer; None: it keeps its size.
    """
    with _opened(item, largest) as image:
        image.load()
        turn = _TURNS.get(_orientation(image))
        plain = _plain(image, 1 if image.mode in ("1", "L") else 3)
        if largest is not None:
            plain.thumbnail((largest, largest))
        return plain.transpose(turn) if turn is not None else plain.copy()


@contextmanager
def _opened(item: Path | bytes | npt.NDArray[Any] | Image.Image, side: int | None) -> Iterator[Image.Image]:
    """An image of any kind, not decoded yet.

    Args:
        item: The image.
        side: What it will be brought to: it may be decoded to a little more than that; None: to its full size.
    """
    if isinstance(item, Path | bytes):
        with _file(item) as file, Image.open(file, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are more than {MOST_PIXELS:,}")
            if side is not None:
                image.draft(None, (round(_REDUCED * side), round(_REDUCED * side)))
            yield image
    else:
        yield item if isinstance(item, Image.Image) else _from_pixels(np.asarray(item))


def _file(item: Path | bytes) -> IO[bytes]:
    if isinstance(item, bytes):
        return io.BytesIO(item)
    size = _regular(item).st_size
    if size > MOST_BYTES:
        raise ValueError(f"the file has {size:,} bytes, more than {MOST_BYTES:,}")
    return item.open("rb")


def looks_like_image(path: Path) -> bool:
    """Whether a file without a known suffix begins like an image."""
    with path.open("rb") as file:
        head = file.read(12)
    webp = head.startswith(b"RIFF") and head.endswith(b"WEBP")  # Sound and films begin with RIFF too.
    return webp or head.startswith(MAGIC) or head[4:] == b"ftypavif"


class Header(NamedTuple):
    """What is known of an image before it is decoded."""

    side: int
    """The shorter one."""
    colour: bool


def header_of(item: Path | bytes | npt.NDArray[Any] | Image.Image) -> Header:
    """What the header of an image alone tells."""
    if isinstance(item, np.ndarray):
        return Header(int(min(item.shape[:2])), item.ndim == 3 and item.shape[2] >= 3)
    if isinstance(item, Image.Image):
        return Header(min(item.size), item.mode.startswith("P") or len(item.getbands()) >= 3)
    if isinstance(item, Path):
        _regular(item)
    with Image.open(io.BytesIO(item) if isinstance(item, bytes) else item, formats=FORMATS) as image:
        return header_of(image)


def _regular(path: Path) -> os.stat_result:
    """What is known of a file; reading a pipe would wait for ever."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a regular file")
    return found


def _brought(image: Image.Image, wanted: Preparation) -> Bytes:
    image.load()  # Pillow turns TIFF files itself when it loads them, and then their note is gone.
    orientation = _orientation(image)
    height, width = wanted.size
    size = (width, height) if orientation in _LYING else (height, width)
    small = fitted(_plain(image, wanted.channels), size, wanted.fit)
    if orientation in _TURNS:
        small = small.transpose(_TURNS[orientation])  # The same as turning the large image, with less work.
    pixels = np.asarray(small)
    return pixels if pixels.ndim == 3 else pixels[..., np.newaxis]


def _orientation(image: Image.Image) -> int:
    """How the camera was held; a broken note about it does not make the picture unreadable."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:
        return 1


def _plain(image: Image.Image, channels: int | None) -> Image.Image:
    """Eight bits, grey or colour, on white where it was transparent."""
    if image.mode.startswith(("I", "F")):
        image = _eight_bits(image)
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    mode = "L" if channels == 1 else "RGB"
    return image if image.mode == mode else image.convert(mode)  # Converting copies, even to the same mode.


def _eight_bits(image: Image.Image) -> Image.Image:
    """Whole numbers of 16 bits and floating-point numbers in 0 to 1, 0 to 255 or 0 to 65,535."""
    values = np.asarray(image, dtype=np.float32)
    if not np.isfinite(values).all():
        raise ValueError("its pixels are not all numbers")
    whole = image.mode.startswith("I;16")
    highest = float(values.max())
    scale = 1 / 257 if whole or highest > 255 else 255.0 if image.mode == "F" and highest <= 1 else 1.0
    return Image.fromarray((values * scale).round().clip(0, 255).astype(np.uint8))


def _from_pixels(pixels: npt.NDArray[Any]) -> Image.Image:
    """An array (H, W) or (H, W, C) as an image."""
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim not in (2, 3) or pixels.size == 0:
        raise ValueError(f"pixels must have the shape (H, W) or (H, W, C), got {pixels.shape}")
    if pixels.dtype == bool:
        pixels = pixels.astype(np.float32)
    if pixels.dtype != np.uint8:
        if not np.issubdtype(pixels.dtype, np.floating) or not (pixels.min() >= 0 and pixels.max() <= 1):
            raise ValueError(f"pixels must be uint8 or floats in [0, 1], got {pixels.dtype}")
        pixels = (pixels * 255).round().astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(pixels))
