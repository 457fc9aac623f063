"""Image files of known classes, in a folder or in a zip archive that is read in place."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dccm.data.names import Names
from dccm.data.sources.arrays import stamp
from dccm.data.sources.base import Source
from dccm.documents import check, named_if_broken, read_small
from dccm.errors import UserError

_LARGEST_TEXT = 64_000_000
_REPAIR = "delete it, and get the official file"
_SUFFIXES = (".jpeg", ".jpg")


class Tree(Protocol):
    """Files by their paths, which are written with slashes."""

    path: Path

    def text(self, name: str) -> str:
        """What a text file says; nothing if there is none."""

    def images(self, folder: str) -> list[str]:
        """Paths of the JPEG files in a folder, sorted; none if there is no such folder."""

    def read(self, name: str) -> Path | bytes:
        """A file, or what is in it."""

    def fingerprint(self, names: Sequence[str]) -> str:
        """Changes when one of the files does."""


class FolderTree:
    """Files in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self, name: str) -> str:
        """What a text file says; nothing if there is none."""
        path = self.path / name
        if not path.is_file():
            return ""
        with named_if_broken(path, _REPAIR):
            return read_small(path, _LARGEST_TEXT).decode("utf-8")

    def images(self, folder: str) -> list[str]:
        """Paths of the JPEG files in a folder, sorted; none if there is no such folder."""
        place = self.path / folder
        files = place.iterdir() if place.is_dir() else ()
        return sorted(f"{folder}/{file.name}" for file in files if _is_image(file.name))

    def read(self, name: str) -> Path:
        """The file itself."""
        return self.path / name

    def fingerprint(self, names: Sequence[str]) -> str:
        """Of the sizes and times of the files."""
        return stamp(self.path / name for name in names)


class ZipTree:
    """Files in a zip archive.

    Args:
        path: The archive.
        top: The folder in it that counts as the root.
    """

    def __init__(self, path: Path, top: str) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise UserError(
                f"{path} is damaged ({error}). Delete it, and it will be downloaded, or put a sound copy in its place."
            ) from error
        self._top = f"{top}/"
        self._folders: dict[str, list[str]] = {}
        for name in self._zip.namelist():
            if name.startswith(self._top) and _is_image(name):
                inner = name.removeprefix(self._top)
                self._folders.setdefault(inner.rpartition("/")[0], []).append(inner)

    def text(self, name: str) -> str:
        """What a text file says; nothing if there is none."""
        if self._top + name not in self._zip.NameToInfo:
            return ""
        with named_if_broken(self.path, _REPAIR):
            try:
                with self._zip.open(self._top + name) as file:
                    content = file.read(_LARGEST_TEXT + 1)
            except (RuntimeError, NotImplementedError) as error:  # It is encrypted, or compressed in an odd way.
                raise ValueError(str(error)) from error
            check(len(content) <= _LARGEST_TEXT, f"{name} is larger than {_LARGEST_TEXT:,} bytes")
            return content.decode("utf-8")

    def images(self, folder: str) -> list[str]:
        """Paths of the JPEG files in a folder, sorted; none if there is no such folder."""
        return sorted(self._folders.get(folder, ()))

    def read(self, name: str) -> bytes:
        """What is in the file."""
        return self._zip.read(self._top + name)

    def fingerprint(self, names: Sequence[str]) -> str:
        """Of the size and time of the archive."""
        del names  # It has all of them.
        return stamp([self.path])


class LabelledFiles(Source):
    """Image files of known classes.

    Args:
        tree: Where they are.
        names: Their paths in it.
        labels: Their classes.
        class_names: What the classes are called.
        splits: `train` or `test` for each.
    """

    kind = "benchmark"

    def __init__(
        self,
        tree: Tree,
        names: Sequence[str],
        labels: npt.NDArray[Any],
        class_names: Sequence[str],
        splits: npt.NDArray[np.str_] | None = None,
    ) -> None:
        self.names = Names(names)
        self.labels, self.splits, self.class_names = labels, splits, class_names
        self._tree = tree
        self._fingerprint = ""

    def read(self, index: int) -> Path | bytes:
        """The file, or what is in it."""
        return self._tree.read(self.names[index])

    def fingerprint(self) -> str:
        """Of the sizes and times of all files."""
        self._fingerprint = self._fingerprint or self._tree.fingerprint(self.names)
        return self._fingerprint


def _is_image(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES) and not name.rpartition("/")[2].startswith(".")
