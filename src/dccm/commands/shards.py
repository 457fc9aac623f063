"""Assign or embed more images than one machine holds: shard by shard, beside each other, a parquet file for each."""

from pathlib import Path
from typing import Any, Unpack

from dccm.commands.reading import Reading
from dccm.data.storage import is_address
from dccm.errors import require
from dccm.fleet.engines import ENGINES
from dccm.fleet.jobs import Job, assigning, embedding
from dccm.fleet.run import Pace, Summary, do_shards
from dccm.progress import SILENT, Watcher, clock
from dccm.training.progress import Stage


def predict_shards(
    model: str | Path,
    images: Any,
    output: str | Path | None,
    *,
    device: str = "auto",
    reject: float | str | None = None,
    engine: str | None = None,
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> Summary:
    """Assign images to clusters as corrected by then, with confidence.

    What is done already stays, so the same command goes on after a stop, and does what is new.

    Args:
        model: Run directory, or model folder.
        images: A path, an address or a pattern of shards, or several of them as `Sources`.
        output: Folder or address for the results.
        device: Where to compute.
        reject: Threshold of images that get no cluster, `below:0.6`; None: as the model was trained.
        engine: `processes` of this machine, or `ray` for the machines of a cluster; None: processes.
        watcher: Is told how it gets on.
        **reading: `processes`, `workers` and `cache`; see `Reading`.
    """
    job = assigning(model, reject, device, reading.get("cache"))
    return _done(job, images, output, engine, watcher, **reading)


def embed_shards(
    images: Any,
    encoder: str,
    output: str | Path | None,
    *,
    image_size: int | None = None,
    device: str = "auto",
    engine: str | None = None,
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> Summary:
    """Write a vector of length one per image; otherwise as `predict_shards`.

    Args:
        images: As there.
        encoder: See "dccm encoders".
        output: Folder or address for the results.
        image_size: Side to which images are brought before the encoder brings them to its own; None: that one.
        device: Where to compute.
        engine: As there.
        watcher: Is told how it gets on.
        **reading: As there.
    """
    job = embedding(encoder, image_size, device, reading.get("cache"))
    return _done(job, images, output, engine, watcher, **reading)


def by_shards(output: object, engine: str | None, processes: int | None) -> bool:
    """Whether results are wanted shard by shard: the user named who does them, or an address for them."""
    return engine is not None or processes is not None or (isinstance(output, str) and is_address(output))


def _done(
    job: Job,
    images: Any,
    output: str | Path | None,
    engine: str | None,
    watcher: Watcher,
    **reading: Unpack[Reading],
) -> Summary:
    require(output is not None, "output must be given where shards are done one by one. Name a folder or an address.")
    assert output is not None
    for name in ("split", "variant", "class_folders", "data_root"):
        require(
            not reading.get(name),
            f"{name} must be left out where shards are done one by one, got {reading.get(name)}. Leave out engine and "
            "processes, or name the shards that are meant.",
        )

    def on_pace(pace: Pace) -> None:
        left = (
            f"{pace.shards}/{pace.of} shards  {pace.images_per_second:,.0f} images/s  {clock(pace.seconds_left)} left"
        )
        watcher.training(Stage(left, pace.share))

    using: dict[str, Any] = {"processes": reading.get("processes"), "threads": reading.get("workers")}
    return do_shards(job, images, output, engine=engine or ENGINES[0], **using, on_pace=on_pace, say=watcher.say)
