"""Images in the shape that a trained model takes."""

from pathlib import Path
from typing import Any

from dccm.data.images import ImageSet
from dccm.data.read import read_images
from dccm.progress import Watcher
from dccm.runs.model import Model


def read_for(
    model: Model,
    images: Any,
    watcher: Watcher,
    *,
    class_folders: bool = False,
    split: str = "",
    variant: str = "",
    data_root: Path | None = None,
    cache: Path | None = None,
    workers: int | None = None,
) -> ImageSet:
    """Images of any kind, brought to the model's size and channels as those were that it learnt from."""
    shape = model.picture_shape
    return read_images(
        images,
        image_size=(shape.height, shape.width),
        fit=model.config.data.fit,
        channels=shape.channels,
        class_folders=class_folders,
        split=split,
        variant=variant,
        data_root=data_root,
        cache=cache,
        workers=workers,
        on_progress=watcher.reading,
        on_download=watcher.downloading,
        say=watcher.say,
    )
