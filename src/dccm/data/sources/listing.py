"""A list of image files: text with one path per line, or CSV with a column `path`; from a file, or typed in."""

import hashlib
import sys
from pathlib import Path

import numpy as np

from dccm.data.images import Skipped
from dccm.data.names import Names, shortened
from dccm.data.passing import require_means
from dccm.data.sources.base import Source
from dccm.errors import counted, require
from dccm.files import open_regular, read_csv

STDIN = "-"
_MOST_TYPED = 512 * 1024 * 1024


class Listing(Source):
    """The files that a list names; paths are relative to the list's own folder.

    A column `label` is the true class, a column `split` says `train` or `test`. `-` is a list of paths on standard
    input, relative to the current folder; between them are ends of lines, or zeros as `find -print0` writes them.
    """

    kind = "list of paths"

    def __init__(self, path: Path) -> None:
        self.folder = path.parent
        self.place = str(path.resolve())
        if str(path) == STDIN:
            rows = _typed_rows()
            self.place = f"{self.folder.resolve()}:{hashlib.sha256(repr(rows).encode()).hexdigest()}"
        else:
            rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _text_rows(path)
        require(bool(rows), f"The list {path} names no file. Write one path per line.")
        self.skipped: list[Skipped] = []
        digest = hashlib.sha256()
        kept = []
        for row in rows:
            try:
                found = (self.folder / row["path"]).stat()
                if not (self.folder / row["path"]).is_file():
                    raise OSError(0, "not a regular file")
                digest.update(f"{row['path']!r} {found.st_size} {found.st_mtime_ns}\n".encode())
                kept.append(row)
            except (OSError, ValueError) as error:
                require_means(error)
                reason = f"cannot be opened: {getattr(error, 'strerror', error)}"
                self.skipped.append(Skipped(shortened(row["path"]), reason))
                digest.update(f"{row['path']!r} {reason}\n".encode())
        files = counted(len(rows), "file")
        require(bool(kept), f"{path} names {files}, and none exists. Paths are relative to the list.")
        self.names = Names(row["path"] for row in kept)
        if "label" in rows[0]:
            self.labels = np.array([row["label"] for row in kept])
        if "split" in rows[0]:
            self.splits = np.array([row["split"] for row in kept])
        self._fingerprint = digest.hexdigest()

    def read(self, index: int) -> Path:
        """The file itself."""
        return self.folder / self.names[index]

    def fingerprint(self) -> str:
        """Of the names, sizes and times of all files, and of what was left out."""
        return self._fingerprint


def _text_rows(path: Path) -> list[dict[str, str]]:
    text = _text(path)
    require("\0" not in text, f"{path} is not a list of paths: it is not text. Give a list, a folder or an array.")
    # Not `splitlines`: names may hold what it takes for an end of line.
    return [{"path": line.removesuffix("\r")} for line in text.split("\n") if line.strip()]


def _typed_rows() -> list[dict[str, str]]:
    content = sys.stdin.buffer.read(_MOST_TYPED + 1)
    require(
        len(content) <= _MOST_TYPED, f"The list on standard input is longer than {_MOST_TYPED:,} bytes. Shorten it."
    )
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines = text.split("\0") if "\0" in text else [line.removesuffix("\r") for line in text.split("\n")]
    return [{"path": line} for line in lines if line.strip()]


def _csv_rows(path: Path) -> list[dict[str, str]]:
    repair = "write a first line 'path' or 'path,label', then one line per image"
    rows = list(read_csv(path, ("path",), repair))
    require(all(row["path"] for row in rows), f"{path} is broken (a row names no file in its column 'path'); {repair}.")
    return rows


def _text(path: Path) -> str:
    with open_regular(path) as file:
        text = file.read().decode("utf-8", "surrogateescape")
    return text.removeprefix("\ufeff")  # The mark with which some programs begin text.
