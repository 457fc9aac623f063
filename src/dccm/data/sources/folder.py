"""A folder of image files, with all folders in it."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dccm.data.decode import SUFFIXES, looks_like_image
from dccm.data.images import Skipped
from dccm.data.names import Names
from dccm.data.passing import require_means
from dccm.data.sources.base import Source
from dccm.errors import UserError, counted


class Folder(Source):
    """Image files below a folder, by name of path.

    Links to folders are followed, each real folder is entered once, so links cannot go round in circles. A file with
    another suffix, or none, counts as an image if it begins like one.
    """

    kind = "folder"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = str(folder.resolve())
        self.others = 0
        self.skipped: list[Skipped] = []
        self._digest = hashlib.sha256()
        self.names = Names(self._walk(folder))
        if not self.names:
            files = counted(self.others + len(self.skipped), "file")
            first = f" ({self.skipped[0].path}: {self.skipped[0].reason})" if self.skipped else ""
            raise UserError(
                f"There is no image in {folder}: it has {files}, and none that can be read as one{first}. "
                "Give a folder that holds images."
            )

    def read(self, index: int) -> Path:
        """The file itself; it is opened by whoever decodes it."""
        return self.folder / self.names[index]

    def changed(self) -> bool:
        """Whether another listing finds something else; that takes a small part of the time of reading."""
        try:
            return Folder(self.folder).fingerprint() != self.fingerprint()
        except (OSError, UserError):
            return True

    def fingerprint(self) -> str:
        """Of the names, sizes and times of all images, and of what was left out."""
        return self._digest.hexdigest()

    def _walk(self, top: Path) -> Iterator[str]:
        """Names of images below a folder, sorted within each folder; what is not a file is noted."""
        entered = {_identity(top.stat())}
        levels = [self._entries(top, "")]  # Not by recursion: folders may be nested deeper than functions.
        while levels:
            path, name = next(levels[-1], (None, ""))
            if path is None:
                levels.pop()
                continue
            try:
                found = path.stat()
                if stat.S_ISDIR(found.st_mode):
                    if _identity(found) not in entered:
                        entered.add(_identity(found))
                        levels.append(self._entries(path, name + os.sep))
                elif self._is_image(path, found):
                    self._digest.update(f"{name!r} {found.st_size} {found.st_mtime_ns}\n".encode())
                    yield name
                else:
                    self.others += 1
            except OSError as error:
                require_means(error)
                self._skip(name, f"cannot be opened: {error.strerror}")

    def _entries(self, folder: Path, prefix: str) -> Iterator[tuple[Path, str]]:
        """What a folder holds, each with its name below the top."""
        try:
            entries = sorted(entry.name for entry in folder.iterdir())
        except OSError as error:
            require_means(error)
            self._skip(prefix or ".", f"the folder cannot be read: {error.strerror}")
            return
        yield from ((folder / entry, prefix + entry) for entry in entries)

    def _skip(self, name: str, reason: str) -> None:
        self.skipped.append(Skipped(name, reason))
        self._digest.update(f"{name!r} {reason}\n".encode())

    def _is_image(self, path: Path, found: os.stat_result) -> bool:
        known = path.suffix.lower() in SUFFIXES
        if stat.S_ISREG(found.st_mode):
            return known or looks_like_image(path)
        if known:
            raise OSError(0, "not a regular file")  # Reading a pipe would wait for ever.
        return False


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
