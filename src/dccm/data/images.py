"""Images of any origin as one array of bytes, with a name for each, and a reason for each that could not be read."""

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from dccm.data.loader import Bytes
from dccm.errors import UserError, require

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"})
SIDES = (32, 64, 96)
"""Image sides that the paper's networks were made for."""
_MOST_PIXELS = 100_000_000
_LABEL_KEYS = ("labels", "label", "y")
_IMAGE_KEYS = ("images", "image", "x")


class Skipped(NamedTuple):
    """A file that is not among the images."""

    path: str
    reason: str


@dataclass(frozen=True)
class ImageSet:
    """Images, and what belongs to each of them."""

    images: Bytes
    """(N, H, W, C)."""
    names: list[str]
    """A path or number for each image."""
    labels: npt.NDArray[Any] | None = None
    """True classes, if known; for evaluation alone."""
    skipped: list[Skipped] = field(default_factory=list)


def read_images(
    source: Path,
    *,
    image_size: int | None = None,
    channels: int | None = None,
    report: Callable[[int, int], None] | None = None,
) -> ImageSet:
    """Read a folder of image files (with all folders in it), an `.npy` or an `.npz` file.

    Args:
        source: Where the images are.
        image_size: Side to which they are brought; none: arrays keep theirs, folders get the nearest of 32, 64, 96.
        channels: 1 or 3 to turn them into grey or colour; none: grey only if every image is.
        report: Called with files done and files in all.
    """
    require(source.exists(), f"There is no file or folder {source}. Give a folder of images, an .npy or an .npz file.")
    found = _read_folder(source, image_size, report) if source.is_dir() else _read_array_file(source, image_size)
    return ImageSet(with_channels(found.images, channels), found.names, found.labels, found.skipped)


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


def resized(images: Bytes, side: int) -> Bytes:
    """Square images of this side: the shorter side is scaled, the longer one cropped to its middle."""
    if images.shape[1:3] == (side, side):
        return images
    planes = [[_fit(Image.fromarray(image[..., c]), side) for c in range(image.shape[2])] for image in images]
    return np.stack([np.stack([np.asarray(plane) for plane in image], axis=-1) for image in planes])


def _fit(image: Image.Image, side: int) -> Image.Image:
    return ImageOps.fit(image, (side, side), method=Image.Resampling.BICUBIC)


def _read_array_file(source: Path, image_size: int | None) -> ImageSet:
    require(
        source.suffix in (".npy", ".npz"),
        f"{source} is not a folder, an .npy or an .npz file. Put the images into a folder, or save them as an array.",
    )
    try:
        content = np.load(source, allow_pickle=False)
        arrays = dict(content) if source.suffix == ".npz" else {"images": content}
    except (OSError, ValueError, EOFError, UserWarning) as error:
        raise UserError(f"{source} cannot be read as an array ({error}). Save it anew with numpy.save.") from error
    key = next((key for key in _IMAGE_KEYS if key in arrays), None)
    require(key is not None, f"{source} must hold an array 'images', it holds {', '.join(arrays)}. Rename one.")
    images = as_bytes(arrays[str(key)])
    labels = next((arrays[key] for key in _LABEL_KEYS if key in arrays), None)
    require(
        labels is None or labels.shape == (len(images),),
        f"{source} must hold one label for each of its {len(images)} images, or none.",
    )
    if image_size is not None:
        images = resized(images, image_size)
    return ImageSet(images, [str(number) for number in range(len(images))], labels)


def _read_folder(folder: Path, image_size: int | None, report: Callable[[int, int], None] | None) -> ImageSet:
    files = sorted(_files(folder))
    candidates = [file for file in files if file.suffix.lower() in SUFFIXES]
    require(
        bool(candidates),
        f"There is no image in {folder}: of its {len(files)} files none ends in one of {', '.join(sorted(SUFFIXES))}. "
        "Give a folder that holds images.",
    )
    side = image_size or _usual_side(candidates)
    images, names, skipped = [], [], []
    for number, file in enumerate(candidates):
        name = str(file.relative_to(folder))
        try:
            images.append(_decode(file, side))
            names.append(name)
        except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Warning) as error:
            skipped.append(Skipped(name, f"{type(error).__name__}: {error}"))
        if report is not None:
            report(number + 1, len(candidates))
    if not images:
        raise UserError(
            f"None of the {len(candidates)} image files in {folder} can be read; the first, {skipped[0].path}: "
            f"{skipped[0].reason}. Give sound files."
        )
    stacked = np.stack(images)
    if (stacked == stacked[..., :1]).all():
        stacked = stacked[..., :1]
    return ImageSet(stacked, names, None, skipped)


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder; links to folders are not followed, so there are no loops."""
    for base, _, names in os.walk(folder):
        yield from (Path(base) / name for name in names)


def _usual_side(files: list[Path]) -> int:
    """The paper's side nearest to the median shorter side of (up to 100 of) the images."""
    sides = []
    for file in files[:: max(1, len(files) // 100)]:
        try:
            with Image.open(file) as image:
                sides.append(min(image.size))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue  # Decoding reports it with its reason.
    usual = float(np.median(sides)) if sides else SIDES[0]
    return min(SIDES, key=lambda side: abs(side - usual))


def _decode(file: Path, side: int) -> Bytes:
    """One image file as a square of colour."""
    with warnings.catch_warnings(), Image.open(file) as image:
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        if image.width * image.height > _MOST_PIXELS:
            raise ValueError(f"{image.width} x {image.height} pixels are more than {_MOST_PIXELS}")
        image.draft("RGB", (2 * side, 2 * side))
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):
            upright = Image.fromarray((np.asarray(upright) >> 8).clip(0, 255).astype(np.uint8))
        return np.asarray(_fit(upright.convert("RGB"), side))
