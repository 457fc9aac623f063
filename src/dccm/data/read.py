"""Images of whatever kind the user has: the one door to all sources."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import Fit
from dccm.data.decode import Preparation, side_of
from dccm.data.duplicates import content_hashes, find_duplicates
from dccm.data.images import ImageSet, as_bytes, resized, with_channels
from dccm.data.prepare import prepare
from dccm.data.sources.archive import TAR_SUFFIXES, Tar, Zip
from dccm.data.sources.array_files import open_array_file
from dccm.data.sources.arrays import ArraySource
from dccm.data.sources.base import Source
from dccm.data.sources.folder import Folder
from dccm.data.sources.listing import Listing
from dccm.data.sources.objects import HuggingFace, Torch
from dccm.data.sources.parquet import Parquet
from dccm.errors import UserError, require

SIDES = (32, 64, 96)
"""Image sides that the paper's networks were made for."""
_SAMPLED = 100
"""Images whose size is looked at to choose a side."""
_KINDS = "a folder of images, a zip or tar archive, a parquet, .npy or .npz file, or a list of paths (.txt, .csv)"


def read_images(
    source: Any,
    *,
    image_size: int | None = None,
    fit: Fit = "crop",
    channels: int | None = None,
    class_folders: bool = False,
    cache: Path | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> ImageSet:
    """Read images of any kind that `open_source` knows.

    Arrays are taken as they are. Everything else is decoded once, into a cache that later runs map into memory.

    Args:
        source: A path, an array, a tensor or a data set.
        image_size: Side to which images are brought; none: arrays keep theirs, others get the nearest of 32, 64, 96.
        fit: Crop the longer side, or pad the shorter one.
        channels: 1 or 3 to turn them into grey or colour; none: grey only if every image is.
        class_folders: The first folder of each path or name is the image's true class; for evaluation alone.
        cache: Where prepared images are kept; none: the user's cache folder.
        workers: Threads that decode; none: one for each processor.
        on_progress: Called with images done and images in all.
        say: Called with a sentence that the user should read.
    """
    opened = open_source(source, class_folders=class_folders)
    if isinstance(opened, ArraySource):
        return _taken(opened, image_size, fit, channels)
    wanted = Preparation(image_size or _usual_side(opened), fit, channels)
    return prepare(opened, wanted, cache=cache, workers=workers, on_progress=on_progress, say=say)


def open_source(thing: Any, *, class_folders: bool = False) -> Source:
    """The source that fits what the user gave."""
    source = _opened(thing)
    if class_folders:
        source.label_by_folder()
    return source


def _opened(thing: Any) -> Source:
    if isinstance(thing, Source):
        return thing
    if isinstance(thing, ImageSet):
        return ArraySource(thing.images, thing.names, thing.labels, thing.splits)
    if isinstance(thing, str | Path):
        return _open_path(Path(thing))
    if isinstance(thing, np.ndarray):
        return ArraySource(as_bytes(thing))
    if hasattr(thing, "column_names"):
        require(
            not hasattr(thing, "keys"),
            "The data set has several splits. Choose one, for example dataset['train'].",
        )
        return HuggingFace(thing)
    if hasattr(thing, "detach"):
        pixels = thing.detach().cpu().numpy()
        return ArraySource(as_bytes(pixels.transpose(0, 2, 3, 1) if pixels.ndim == 4 else pixels))
    return Torch(thing)


def _open_path(path: Path) -> Source:
    require(path.exists(), f"There is no file or folder {path}. Give {_KINDS}.")
    if path.is_dir():
        files = sorted([*path.glob("*.parquet"), *path.glob("data/*.parquet")])
        return Parquet(files, path) if files else Folder(path)
    name = path.name.lower()
    if name.endswith((".npy", ".npz")):
        return open_array_file(path)
    if name.endswith(".parquet"):
        return Parquet([path], path)
    if name.endswith(".zip"):
        return Zip(path)
    if name.endswith(TAR_SUFFIXES):
        return Tar(path)
    if name.endswith((".txt", ".csv")):
        return Listing(path)
    raise UserError(f"{path} is of no kind that can be read. Give {_KINDS}.")


def _taken(source: ArraySource, image_size: int | None, fit: Fit, channels: int | None) -> ImageSet:
    """An array, changed only where that was asked for."""
    images = source.images if image_size is None else resized(source.images, image_size, fit)
    images = with_channels(images, channels)
    duplicates = find_duplicates(content_hashes(images), source.names)
    return ImageSet(images, source.names, source.labels, [], duplicates, source.splits)


def _usual_side(source: Source) -> int:
    """The paper's side nearest to the median shorter side of (up to 100 of) the images."""
    step = 1 if source.in_order else max(1, len(source) // _SAMPLED)
    sides = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Decoding reports what is wrong, with its reason.
        for place in range(0, min(len(source), step * _SAMPLED), step):
            with suppress(Exception):
                sides.append(side_of(source.read(place)))
    usual = float(np.median(sides)) if sides else SIDES[0]
    return min(SIDES, key=lambda side: abs(side - usual))
