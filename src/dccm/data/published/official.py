"""Files of a benchmark as they are published: in a folder, or still in the archive in which they came."""

import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from dccm.arrays import Bytes
from dccm.data.published.download import Remote
from dccm.data.sources.base import Source
from dccm.errors import UserError, require

BROKEN_ARCHIVE = (tarfile.TarError, EOFError, OSError, zlib.error)
"""What damaged tar and gzip files raise."""


class Benchmark(NamedTuple):
    """How to get at a data set that is known by name."""

    locate: Callable[[Path], Path | None]
    """Its folder or archive below a root; none if it is not there."""
    read: Callable[[Path, str], Source]
    """The images of that folder or archive, in one of the variants or, with an empty word, as the paper clusters."""
    absent: str
    """Half a sentence for a root without it: what was looked for."""
    remotes: tuple[Remote, ...] = ()
    """What to download; nothing if its owners ask for a registration."""
    folder: str = ""
    """Where downloads go below the root, if files of their names could be anything's."""
    variants: tuple[str, ...] = ()


class Layout(NamedTuple):
    """The names under which a benchmark is published."""

    folder: str
    archive: str
    sign: str
    """A file by which the folder is known when it has another name."""
    homes: tuple[str, ...] = ()
    """Folders below the root in which other tools keep it."""

    def locate(self, root: Path) -> Path | None:
        """Its folder or archive, whichever comes first."""
        for base in (root, *(root / home for home in self.homes)):
            if (base / self.folder).is_dir():
                return base / self.folder
            if (base / self.sign).is_file():
                return base
            if (base / self.archive).is_file():
                return base / self.archive
        return None

    def absent(self) -> str:
        """What was looked for in vain."""
        return f"neither the folder {self.folder} nor the file {self.archive} is there"


def read_files(path: Path, wanted: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Bytes]:
    """The contents of some files by name, mapped into memory if they lie in a folder.

    Args:
        path: A folder, or a tar archive, which is read in place.
        wanted: Files that must be there.
        optional: Files that may be.
    """
    found = (_from_folder if path.is_dir() else _from_archive)(path, [*wanted, *optional])
    missing = [name for name in wanted if name not in found]
    require(
        not missing,
        f"{path} must hold {', '.join(missing)}, and does not. Unpack or copy it anew, or delete it, and it will be "
        "downloaded.",
    )
    return found


def _from_folder(folder: Path, names: Sequence[str]) -> dict[str, Bytes]:
    paths = {name: folder / name for name in names if (folder / name).is_file()}
    return {name: _mapped(path) for name, path in paths.items()}


def _mapped(path: Path) -> Bytes:
    try:
        return np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.empty(0, dtype=np.uint8)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Change its permissions.") from error


def _from_archive(path: Path, names: Sequence[str]) -> dict[str, Bytes]:
    found: dict[str, Bytes] = {}
    try:
        for name, content in _members(path):
            if name in names:
                found[name] = np.frombuffer(content(), dtype=np.uint8)
            if len(found) == len(names):
                break  # What follows may be gigabytes.
    except BROKEN_ARCHIVE as error:
        raise UserError(
            f"{path} is damaged ({error}). Delete it, and it will be downloaded, or put a sound copy in its place."
        ) from error
    return found


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Names of the files in an archive, without folders, and how to read them."""
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isreg() else None
            if file is not None:
                yield PurePosixPath(member.name).name, file.read
