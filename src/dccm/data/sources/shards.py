"""Shards: archives and parquet files of many images each, or image files by the thousand, wherever fsspec finds them.

A shard is listed and read by itself, so processes and machines can share the work. One that is not on this machine is
fetched whole before it is opened and deleted when it is left: no process has more than one on its disk.
"""

import errno
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt

from dccm.data.decode import MOST_BYTES, SUFFIXES
from dccm.data.images import Skipped
from dccm.data.names import Names
from dccm.data.passing import require_means
from dccm.data.sources.archive import TAR_SUFFIXES, Tar, Zip
from dccm.data.sources.base import Item, Source
from dccm.data.sources.parquet import Parquet
from dccm.data.storage import Stored, fetch, files_at, read_stored
from dccm.errors import UserError, require

SHARD_SUFFIXES = (*TAR_SUFFIXES, ".zip", ".parquet")
_FILES = 10_000
"""Image files that make a shard."""


@dataclass(frozen=True)
class Shard:
    """A part of the images that is listed and read by itself."""

    name: str
    """Below the place that the user named; no other shard there is called so."""
    files: tuple[Stored, ...]
    """An archive or a parquet file; or image files."""
    names: tuple[str, ...] = ()
    """Of the image files; empty: it is an archive or a parquet file."""
    prefix: str = ""
    """Stands before the names of its images."""

    @property
    def stamp(self) -> str:
        """Changes when the shard does."""
        text = "\n".join(f"{file.place} {file.stamp}" for file in self.files)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class Listed(NamedTuple):
    """What a shard holds."""

    names: Names
    labels: npt.NDArray[Any] | None
    splits: npt.NDArray[Any] | None
    skipped: list[Skipped]


class Files(Source):
    """Image files of one shard."""

    kind = "files"

    def __init__(self, shard: Shard) -> None:
        self._files = shard.files
        self.names = Names(shard.names)

    def read(self, index: int) -> bytes:
        """The content of a file."""
        file = self._files[index]
        if file.size > MOST_BYTES:
            raise ValueError(f"the file has {file.size:,} bytes, more than {MOST_BYTES:,}")
        try:
            return read_stored(file.place)
        except UserError as error:  # It says what the storage did at this moment, not what the file is.
            raise OSError(errno.EIO, str(error)) from error


def shards_at(place: str) -> list[Shard]:
    """The shards at a path or address, in the order of their names.

    Args:
        place: A shard, a folder or prefix of shards or of images, or a pattern such as `s3://bucket/*.tar`.
    """
    found = files_at(place)
    archives = [file for file in found.files if file.place.lower().endswith(SHARD_SUFFIXES)]
    images = [file for file in found.files if Path(file.place).suffix.lower() in SUFFIXES]
    require(
        not (archives and images),
        f"{place} holds shards ({len(archives):,} archives and parquet files) and {len(images):,} image files. "
        "Name those that are meant, for example by a pattern: '*.tar'.",
    )
    require(
        bool(archives or images),
        f"There are no shards at {place}: none of {len(found.files):,} files is a tar or zip archive, a parquet file "
        "or an image. Check the address.",
    )
    if images:
        return list(_of_images(images, [found.name(file) for file in images]))
    alone = archives == found.files and archives[0].place.rpartition("/")[2] == place.rpartition("/")[2]
    names = [found.name(file) for file in archives]
    return [Shard(name, (file,), prefix="" if alone else f"{name}/") for name, file in zip(names, archives)]


def _of_images(files: list[Stored], names: list[str]) -> Iterator[Shard]:
    for number, start in enumerate(range(0, len(files), _FILES)):
        part = slice(start, start + _FILES)
        yield Shard(f"images-{number:05}", tuple(files[part]), tuple(names[part]))


@contextmanager
def opened(shard: Shard) -> Iterator[Source]:
    """The images of one shard; sentences about it say its own name, not that of a copy."""
    with ExitStack() as stack:
        if shard.names:
            yield Files(shard)
            return
        (file,) = shard.files
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dccm-")))
        path = fetch(file, folder)
        try:
            source = _open(path)
        except UserError as error:
            raise UserError(str(error).replace(str(path), file.place)) from error
        stack.callback(source.close)
        if path.parent == folder:
            with suppress(OSError):  # It stays open; where that does not do, it goes with its folder.
                path.unlink()
        yield source


def _open(path: Path) -> Source:
    name = path.name.lower()
    if name.endswith(".parquet"):
        return Parquet([path], path)
    return Zip(path) if name.endswith(".zip") else Tar(path)


def list_shard(shard: Shard) -> Listed:
    """What a shard holds; of one that cannot be opened nothing but the reason."""
    try:
        with opened(shard) as source:
            names = Names(shard.prefix + name for name in source.names)
            skipped = [Skipped(called(shard, path), reason) for path, reason in source.skipped]
            return Listed(names, source.labels, source.splits, skipped)
    except (UserError, OSError) as error:
        require_means(error)
        return Listed(Names([]), None, None, [Skipped(shard.name, f"the shard cannot be read: {error}")])


def called(shard: Shard, path: str) -> str:
    """What is wrong with an archive itself is said under its name."""
    own = shard.name.rpartition("/")[2]
    return shard.name if path == own else shard.prefix + path


class OpenShard:
    """One shard that is opened when it is first read from; what is wrong with it is wrong with each of its images.

    Args:
        shard: The shard.
        count: Images that it had when it was listed.
    """

    def __init__(self, shard: Shard, count: int) -> None:
        self.shard, self._count = shard, count
        self._stack, self._trouble = ExitStack(), ""
        self._source: Source | None = None

    def read(self, index: int) -> Item:
        """One image."""
        if self._source is None and not self._trouble:
            self._open()
        if self._source is None:
            raise OSError(errno.EIO, self._trouble)  # So that it is tried again by the next run.
        return self._source.read(index)

    def _open(self) -> None:
        try:
            source = self._stack.enter_context(opened(self.shard))
        except (UserError, OSError) as error:
            require_means(error)
            self._trouble = f"its shard cannot be read any more: {error}"
            return
        if len(source) == self._count:
            self._source = source
        else:
            self._trouble = "its shard has changed since it was listed"

    def close(self) -> None:
        """Let go of the shard."""
        self._stack.close()
        self._source = None


class Part(Source):
    """Images of one shard, from one of them on: what a process prepares.

    Args:
        shard: The shard.
        count: Images in all of it.
        start: The first image.
        names: From that one on.
    """

    kind = "part"

    def __init__(self, shard: Shard, count: int, start: int, names: Iterable[str]) -> None:
        self._shard, self._start = OpenShard(shard, count), start
        self.names = Names(names)

    def read(self, index: int) -> Item:
        """One image."""
        return self._shard.read(self._start + index)

    def close(self) -> None:
        """Let go of the shard."""
        self._shard.close()

    def fingerprint(self) -> str:
        """Of the state of the shard, and of which images these are."""
        return f"{self._shard.shard.stamp} {self._start} {len(self)}"
