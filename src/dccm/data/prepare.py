"""Images of any source, decoded once, in parallel, into the cache."""

import hashlib
import json
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dccm.data.cache import SKIPPED, Writer, locked
from dccm.data.decode import Preparation
from dccm.data.decoding import fill, outcome_of, read_item
from dccm.data.duplicates import find_duplicates
from dccm.data.images import ImageSet, Origin
from dccm.data.parts import fill_by_processes
from dccm.data.passing import require_means
from dccm.data.prepared import Prepared, open_prepared, read_manifest, read_skipped
from dccm.data.sources.base import Source
from dccm.data.sources.sharded import Shards
from dccm.errors import UserError, counted, require
from dccm.files import amount, cache_folder, disk_error
from dccm.machine import keep_memory

OnImages = Callable[[int, int], None]
"""Called with images done and images in all."""


def prepare(
    source: Source,
    wanted: Preparation,
    *,
    cache: str | Path | None = None,
    workers: int | None = None,
    processes: int | None = None,
    on_progress: OnImages | None = None,
    say: Callable[[str], None] | None = None,
) -> ImageSet:
    """All images of a source that can be read, mapped from the cache; what is not there yet is prepared first.

    Args:
        source: Where they come from.
        wanted: What each is brought to.
        cache: Folder of the cache; None: the user's.
        workers: Threads that decode; None: one for each processor.
        processes: That share these threads and the shards of a source of shards; None: this one alone.
        on_progress: Called with images done and images in all.
        say: Called with a sentence that the user should read.
    """
    say = say or (lambda _: None)
    cache = Path(cache or cache_folder()) / "images"
    folder = cache / _key(source, wanted)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if source.place is None:
            folder = Path(tempfile.mkdtemp(prefix="passing-", dir=cache))
        with locked(folder, lambda: say("Another process prepares these images; waiting for it.")):
            prepared = open_prepared(folder, source.fingerprint())
            if prepared is None or _can_be_read(source, prepared.passing, wanted):
                if read_manifest(folder) is not None:
                    say("The images have changed since they were prepared; they are prepared anew.")
                    (folder / "manifest.json").unlink()
                _require_room(folder, source, wanted)
                prepared = _fill(folder, source, wanted, workers or os.cpu_count() or 1, processes or 1, on_progress)
                if source.changed():
                    say("Images changed while they were read; the next run reads them again.")
    except (MemoryError, RuntimeError) as error:  # The latter is of threads that cannot be started.
        require_means(error)
        raise
    except OSError as error:
        again = "then prepare the images again, or choose another cache folder"
        kept = "what is prepared so far is kept"
        raise disk_error(error, f"keep prepared images in {folder}", kept, again, "cache folder") from error
    finally:
        if source.place is None and not (folder / "manifest.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
    if source.place is None:
        weakref.finalize(prepared.images, shutil.rmtree, folder, ignore_errors=True)
    key = "" if source.place is None else folder.name
    return _image_set(source, prepared, Origin(source.kind, source.place or "", key, prepared.checksum))


def _image_set(source: Source, prepared: Prepared, origin: Origin) -> ImageSet:
    names = source.names.take(prepared.kept)
    labels = None if source.labels is None else source.labels[prepared.kept]
    splits = None if source.splits is None else source.splits[prepared.kept]
    duplicates = find_duplicates(prepared.hashes, names)
    return ImageSet(prepared.images, names, labels, prepared.skipped, duplicates, splits, origin)


def _key(source: Source, wanted: Preparation) -> str:
    """The name of the folder for this source and preparation; nothing of the source's own names is in it."""
    text = json.dumps([source.kind, source.place, asdict(wanted)])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _fill(
    folder: Path, source: Source, wanted: Preparation, threads: int, processes: int, on_progress: OnImages | None
) -> Prepared:
    """Decode what is not decoded yet, and complete the preparation."""
    shape = (*wanted.size, wanted.channels or 3)

    def on_done(done: int) -> None:
        if on_progress is not None:
            on_progress(done, len(source))

    with Writer(folder, shape, source.fingerprint()) as writer, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Whatever Pillow finds odd about a picture that it can read.
        keep_memory()  # A third of the time went into handing memory back and forth for every picture.
        if writer.progress.done == 0:
            writer.note((path, SKIPPED, reason, "") for path, reason in source.skipped)
        if isinstance(source, Shards) and processes > 1:
            fill_by_processes(writer, source, wanted, threads, processes, on_done)
        else:
            fill(writer, source, wanted, threads, on_done)
        _require_some(folder, source, writer)
        grey = wanted.channels is None and writer.progress.grey
        writer.finish(_description(source, wanted), left_out=len(source.skipped), to_grey=grey)
    prepared = open_prepared(folder, source.fingerprint())
    if prepared is None:
        raise UserError(f"The prepared images in {folder} do not stay as written. Choose another cache folder.")
    return prepared


def _can_be_read(source: Source, places: list[int], wanted: Preparation) -> bool:
    """Whether the cause why images could not be read is gone for any of them."""
    return any(not outcome_of(read_item(source, place), wanted).passing for place in places)


def _description(source: Source, wanted: Preparation) -> dict[str, Any]:
    where = {"kind": source.kind, "place": source.place, "fingerprint": source.fingerprint()}
    return where | {"preparation": asdict(wanted)}


def _require_some(folder: Path, source: Source, writer: Writer) -> None:
    if writer.progress.images == 0:
        first = next(iter(read_skipped(folder)))
        raise UserError(
            f"The {source.kind} has {counted(len(source), 'image')}, and none can be read; the first, {first.path}: "
            f"{first.reason}. Give sound images."
        )


def _require_room(folder: Path, source: Source, wanted: Preparation) -> None:
    height, width = wanted.size
    needed = len(source) * height * width * (wanted.channels or 3)
    free = shutil.disk_usage(folder).free
    require(
        free > needed,
        f"The prepared images need {amount(needed)} in {folder}, and {amount(free)} are free. "
        "Free some space, or choose another cache folder.",
    )
