"""Decode images before they are needed."""

from pathlib import Path
from typing import Any

from dccm.config import DataConfig, build
from dccm.data.images import ImageSet
from dccm.data.read import read_images
from dccm.progress import SILENT, Watcher


def prepare(
    images: Any,
    *,
    image_size: int | None = None,
    fit: str = "crop",
    split: str = "",
    variant: str = "",
    data_root: Path | None = None,
    cache: Path | None = None,
    workers: int | None = None,
    watcher: Watcher = SILENT,
) -> ImageSet:
    """Decode images into the cache, so that later runs start at once; what is odd about them is in the result.

    Args:
        images: What `read_images` takes.
        image_size: Side in pixels to which they are brought; None: the nearest of 32, 64, 96.
        fit: How they become square; see `DataConfig`.
        split: `train` or `test` for these alone.
        variant: Of a data set by name.
        data_root: Folder with the files of data sets by name.
        cache: Where prepared images are kept.
        workers: Threads that decode.
        watcher: Is told how it gets on.
    """
    [data] = build([DataConfig], {"fit": fit}, "prepare")
    return read_images(
        images,
        image_size=image_size,
        fit=data.fit,
        split=split,
        variant=variant,
        data_root=data_root,
        cache=cache,
        workers=workers,
        on_progress=watcher.reading,
        on_download=watcher.downloading,
        say=watcher.say,
    )
