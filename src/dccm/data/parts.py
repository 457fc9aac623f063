"""Shards prepared beside each other: a process for each, and one that joins what they made, in the order of the shards.

The cache holds the same bytes as if one process had prepared all: each image is decoded alike, and there is one writer.
What processes have made waits in a folder beside, from which a stopped preparation goes on.
"""

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from dccm.data.cache import Writer
from dccm.data.decode import Preparation
from dccm.data.decoding import fill
from dccm.data.sources.sharded import MODULES, Shards
from dccm.data.sources.shards import Part
from dccm.errors import require
from dccm.machine import keep_memory
from dccm.processes import mapped, pool_of


class _Task(NamedTuple):
    """What one process makes."""

    folder: Path
    part: Part
    wanted: Preparation
    shape: tuple[int, int, int]
    threads: int

    def writer(self) -> Writer:
        """Of what it makes."""
        return Writer(self.folder, self.shape, self.part.fingerprint())


def fill_by_processes(
    writer: Writer,
    source: Shards,
    wanted: Preparation,
    threads: int,
    processes: int,
    on_done: Callable[[int], None] = lambda _: None,
) -> None:
    """As `fill`, with a process for each of so many shards at a time; `threads` are of all of them together."""
    folder = writer.folder / "parts"
    each = max(1, threads // processes)

    def tasks() -> Iterator[_Task]:
        for start, part in source.parts(writer.progress.done):
            place = folder / f"{start:012}"
            place.mkdir(parents=True, exist_ok=True)
            yield _Task(place, part, wanted, writer.shape, each)

    with pool_of(processes, MODULES) as pool:
        # One more for each process may wait to be joined: they take room on the disk.
        for task in mapped(pool, _make, tasks(), 2 * processes):
            with task.writer() as part:
                require(
                    part.progress.done == len(task.part),
                    f"What was prepared in {task.folder} does not stay as written. Choose another cache folder.",
                )
                writer.join(part)
            writer.commit()
            shutil.rmtree(task.folder)
            on_done(writer.progress.done)
    shutil.rmtree(folder, ignore_errors=True)


def _make(task: _Task) -> _Task:
    """In a process: prepare what is left of a part."""
    keep_memory()
    with warnings.catch_warnings(), task.writer() as writer:
        warnings.simplefilter("ignore")  # Whatever Pillow finds odd about a picture that it can read.
        fill(writer, task.part, task.wanted, task.threads)
    task.part.close()
    return task
