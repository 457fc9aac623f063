"""Turn images into vectors by a pretrained encoder."""

from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from dccm.arrays import Halves
from dccm.commands.cluster import default_output
from dccm.commands.reading import Reading, read
from dccm.data.images import ImageSet
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.pretrained import open_encoder
from dccm.progress import SILENT, Watcher
from dccm.runs.directory import RunDirectory
from dccm.runs.features import features_of_images
from dccm.runs.parquet import row_groups


class Embedded(NamedTuple):
    """Images and their vectors."""

    features: Halves
    """Of length one, (N, D)."""
    image_set: ImageSet
    encoder: FeatureEncoder
    directory: RunDirectory


def embed(
    images: Any,
    encoder: str = "efficientnet-lite0",
    *,
    output: str | Path | None = None,
    image_size: int | None = None,
    device: str = "auto",
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> Embedded:
    """Write a vector of length one per image, the names of the images and what the encoder was into a folder.

    Args:
        images: What `read_images` takes.
        encoder: See "dccm encoders".
        output: The folder; None: `dccm-` and the name of the images, in the current folder.
        image_size: Side in pixels to which images are brought before the encoder brings them to its own; None: their
            own, up to the encoder's.
        device: Where to compute.
        watcher: Is told how it gets on.
        **reading: Which images, and how they are read; see `Reading`.
    """
    directory = RunDirectory(output or default_output(images))
    directory.require_free()  # Before images are read, which can take long.
    cache = reading.get("cache")
    opened = open_encoder(encoder, device, cache)
    image_set = read(images, watcher, image_size=image_size, up_to=opened.preprocessing.side, fit="crop", **reading)
    features = features_of_images(image_set, opened, cache=cache, on_progress=watcher.training, say=watcher.say)
    with directory.filling():
        _write(directory, features, image_set, opened)
    return Embedded(features, image_set, opened, directory)


def _write(directory: RunDirectory, features: Halves, image_set: ImageSet, encoder: FeatureEncoder) -> None:
    with directory.writing_embedding(image_set.names) as add:
        for rows in row_groups(len(features)):
            add(np.asarray(features[rows], dtype=np.float32))
    directory.write_embedded(image_set.names, {"name": encoder.name, "identity": encoder.identity})
    directory.write_source(image_set)
    directory.write_left_out(image_set)
