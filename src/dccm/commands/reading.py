"""Which images of what the user named, and how they are read: the same for every command."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from dccm.arrays import Fit
from dccm.data.images import ImageSet
from dccm.data.read import open_source, read_images
from dccm.data.resize import Size
from dccm.data.sources.base import Source
from dccm.progress import Watcher

if TYPE_CHECKING:  # It comes with torch, which takes seconds.
    from dccm.runs.model import Model


class Opening(TypedDict, total=False):
    """Arguments of `open_source` that every command hands on."""

    class_folders: bool
    """The first folder of each path is the true class, for scores alone."""
    split: str
    """`train` or `test`, for these images alone."""
    variant: str
    """Of a data set by name: other classes or images than those that the paper clusters."""
    data_root: str | Path | None
    """Folder with the files of data sets by name."""
    processes: int | None
    """That list and prepare shards."""


class Reading(Opening, total=False):
    """Arguments of `read_images` that every command hands on."""

    cache: str | Path | None
    """Where prepared images are kept."""
    workers: int | None
    """Threads that decode."""


def open_images(images: Any, watcher: Watcher, **reading: Unpack[Reading]) -> Source | ImageSet:
    """Images listed but not read; `read` takes them with what is left of the arguments, `cache` and `workers`."""
    opening: Any = {name: value for name, value in reading.items() if name in Opening.__annotations__}
    if isinstance(images, ImageSet) and not any(opening.values()):
        return images
    return open_source(images, on_download=watcher.downloading, **opening)


def read(
    images: Any,
    watcher: Watcher,
    *,
    image_size: int | Size | None,
    fit: Fit,
    up_to: int | None = None,
    channels: int | None = None,
    **reading: Unpack[Reading],
) -> ImageSet:
    """Images of any kind; the watcher is told how it gets on."""
    return read_images(
        images,
        image_size=image_size,
        up_to=up_to,
        fit=fit,
        channels=channels,
        on_progress=watcher.reading,
        on_download=watcher.downloading,
        say=watcher.say,
        **reading,
    )


def read_for(model: "Model", images: Any, watcher: Watcher, **reading: Unpack[Reading]) -> ImageSet:
    """Images of any kind, brought to the model's size and channels as those were that it learnt from."""
    shape, fit = model.picture_shape, model.config.data.fit
    size = (shape.height, shape.width)
    return read(images, watcher, image_size=size, fit=fit, channels=shape.channels, **reading)
