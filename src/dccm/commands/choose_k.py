"""Suggest how many clusters images fall into, without clustering them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from dccm.commands.inputs import take_inputs, with_encoder
from dccm.commands.reading import Reading, open_images
from dccm.data.datasets import data_set_name
from dccm.data.images import ImageSet
from dccm.errors import require
from dccm.networks.encoders import SCRATCH
from dccm.progress import SILENT, Watcher
from dccm.runs.automatic import AUTO as ANY
from dccm.runs.choice import AUTO, Choice, write_choice
from dccm.runs.choosing import choose_number, take_asked
from dccm.runs.config import make_config
from dccm.runs.directory import RunDirectory


class Chosen(NamedTuple):
    """A suggestion."""

    choice: Choice
    image_set: ImageSet
    directory: RunDirectory | None
    """Where it was written; None: nowhere."""


def choose_k(
    images: Any,
    n_clusters: str = AUTO,
    *,
    output: str | Path | None = None,
    encoder: str | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    image_size: int | None = None,
    device: str | None = None,
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> Chosen:
    """Suggest a number of clusters; no label is looked at.

    Args:
        images: What `read_images` takes.
        n_clusters: A range such as `5..30`, or `auto`.
        output: Folder for the record; None: nothing is written.
        encoder: Pretrained network whose vectors are judged; None: as for `cluster`.
        settings: Any settings by name.
        seed: Decides every random draw.
        image_size: Side in pixels to which images are brought.
        device: auto, cpu, cuda, cuda:1, mps.
        watcher: Is told how it gets on.
        **reading: Which images, and how they are read; see `Reading`.
    """
    directory = RunDirectory(output) if output else None
    if directory is not None:
        directory.require_free()  # Before images are read, which can take long.
    named = {
        "n_clusters": n_clusters,
        "encoder": None if encoder == ANY else encoder,
        "seed": seed,
        "image_size": image_size,
        "device": device,
    }
    given = dict(settings or {}) | {name: value for name, value in named.items() if value is not None}
    asked = take_asked(given)
    require(asked is not None, f"n_clusters must be a range such as 5..30, or auto, to choose from, got {n_clusters}.")
    assert asked is not None
    config = make_config("kmeans", overrides=given)  # A method that takes images and vectors alike.
    source = open_images(images, watcher, **reading)
    named_set = bool(data_set_name(images))
    open_to: dict[str, Any] = {"encoder": SCRATCH if named_set and encoder is None else encoder, "given": given}
    config = with_encoder(config, source, preset=None, cache=reading.get("cache"), watcher=watcher, **open_to)
    taken = take_inputs(source, config, watcher, **reading)
    choice = choose_number(taken.inputs, asked, config, watcher.training)
    if directory is not None:
        with directory.filling():
            write_choice(directory.choice, choice)
    return Chosen(choice, taken.image_set, directory)
