"""One shard from its images to its result, which has a row for each image, sound or not, and is put whole."""

import errno
import socket
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from dccm.data.cache import Outcome
from dccm.data.decoding import outcomes
from dccm.data.passing import require_means
from dccm.data.sources.base import Source
from dccm.data.sources.shards import Shard, called, opened
from dccm.data.storage import put
from dccm.errors import UserError
from dccm.fleet.jobs import Job
from dccm.fleet.table import Table
from dccm.machine import keep_memory

_BATCH_BYTES = 16 * 1024 * 1024
"""Of pixels that are looked at together, and become one group of rows."""
_FEWEST, _MOST = 16, 16_384
"""Images of such a batch, however large or small they are."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True)
class Done:
    """What became of a shard."""

    shard: str
    stamp: str
    images: int = 0
    """That were looked at."""
    skipped: int = 0
    """That could not be read."""
    passing: int = 0
    """Of these, the ones that another attempt may read."""
    size: int = 0
    """Bytes of its result."""
    seconds: float = 0.0
    node: str = ""
    """The machine."""
    reason: str = ""
    """Why there is no result; empty: there is one."""
    stops: bool = False
    """No other shard would fare better."""


def result_name(shard: str) -> str:
    """What the result of a shard is called."""
    return shard.removesuffix(".parquet") + ".parquet"


class Worker:
    """Holds an open job, and does one shard after the other; memory does not grow with what they hold.

    Args:
        job: What is done.
        output: Where results are put.
        threads: That decode.
    """

    def __init__(self, job: Job, output: str, threads: int) -> None:
        keep_memory()
        self._job, self._output, self._threads = job, output.rstrip("/"), threads
        self._open = job.opened()

    def do(self, shard: Shard) -> Done:
        """From a shard to its result."""
        started, done = time.monotonic(), Done(shard.name, shard.stamp, node=socket.gethostname())
        with tempfile.TemporaryDirectory(prefix="dccm-") as folder:
            made = Path(folder) / "result.parquet"
            try:
                done = self._written(made, shard, done)
            except (UserError, OSError) as error:
                require_means(error)
                return replace(done, reason=str(error), stops=getattr(error, "errno", None) in _FULL)
            try:
                put(made, f"{self._output}/{result_name(shard.name)}")
            except (UserError, OSError) as error:
                return replace(done, reason=str(error), stops=True)
            size = made.stat().st_size
        return replace(done, size=size, seconds=time.monotonic() - started)

    def _written(self, path: Path, shard: Shard, done: Done) -> Done:
        """Write the rows of all images; what the file says of itself is known at the end."""
        with opened(shard) as source, Table(path, self._job.types) as table, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Whatever Pillow finds odd about a picture that it can read.
            for name, reason in source.skipped:
                table.add([called(shard, name)], [reason], {})
                done = replace(done, skipped=done.skipped + 1)
            start = 0
            for made in self._batches(source):
                names = [shard.prefix + source.names[start + place] for place in range(len(made))]
                pixels = [one.pixels for one in made if one.pixels is not None]
                columns = self._open.columns(np.stack(pixels)) if pixels else {}
                table.add(names, [one.reason for one in made], columns)
                start += len(made)
                done = _with(done, made)
            table.say({"of": self._job.identity, "done": asdict(done)})
        return done

    def _batches(self, source: Source) -> Iterator[list[Outcome]]:
        """What became of the images, so many at a time that they fill some memory and no more."""
        wanted = self._open.wanted
        height, width = wanted.size
        size = min(_MOST, max(_FEWEST, _BATCH_BYTES // (height * width * (wanted.channels or 3))))
        batch: list[Outcome] = []
        for made in outcomes(source, 0, wanted, self._threads):
            batch += made
            if len(batch) >= size:
                yield batch
                batch = []
        if batch:
            yield batch


def _with(done: Done, made: list[Outcome]) -> Done:
    """The same, and some images more."""
    sound, passing = sum(one.pixels is not None for one in made), sum(one.passing for one in made)
    return replace(
        done,
        images=done.images + sound,
        skipped=done.skipped + len(made) - sound,
        passing=done.passing + passing,
    )
