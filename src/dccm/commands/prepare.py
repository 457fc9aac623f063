"""Decode images before they are needed."""

from typing import Any, Unpack

from dccm.commands.reading import Reading, read
from dccm.config import DataConfig, build
from dccm.data.images import ImageSet
from dccm.progress import SILENT, Watcher


def prepare(
    images: Any,
    *,
    image_size: int | None = None,
    fit: str = "crop",
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> ImageSet:
    """Decode images into the cache, so that later runs start at once; what is odd about them is in the result.

    Args:
        images: What `read_images` takes.
        image_size: Side in pixels to which they are brought; None: the nearest of 32, 64, 96.
        fit: How they become square; see `DataConfig`.
        watcher: Is told how it gets on.
        **reading: Which images, and how they are read; see `Reading`.
    """
    [data] = build([DataConfig], {"fit": fit}, "prepare")
    return read(images, watcher, image_size=image_size, fit=data.fit, **reading)
