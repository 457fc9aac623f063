"""Files that are written whole or not at all, and where those live that may be deleted at any time."""

import csv
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dccm.errors import UserError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a whole file, or leave what was there."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file under another name, flush it to the disk, then give it its name: it is never half there."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        again = "then run the same command again, a training run with --resume"
        raise disk_error(error, f"write {path}", "what was there is unharmed", again, "output folder") from error


def disk_error(error: OSError, doing: str, kept: str, again: str, elsewhere: str) -> UserError:
    """Trouble with the disk in one sentence.

    Args:
        error: What the system said.
        doing: What failed, behind "to".
        kept: What is not lost.
        again: What to do when there is room.
        elsewhere: Which other place could be chosen.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(f"No room on disk to {doing}; {kept}. Free some space, {again}.")
    return UserError(f"Cannot {doing}: {error.strerror}. Choose another {elsewhere}.")


class _Lines(list[str]):
    write = list.append


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Rows as CSV, each with a line feed at its end.

    Names of files may hold a carriage return, which Python's writer puts in quotes only if its line ends hold one too.
    """
    lines = _Lines()
    writer = csv.writer(lines, lineterminator="\r\n")
    for row in rows:
        writer.writerow(row)
        yield lines.pop().removesuffix("\r\n") + "\n"


def cache_folder() -> Path:
    """Where prepared images and downloads are kept: $DCCM_CACHE, or `dccm` in the user's cache folder."""
    chosen = os.environ.get("DCCM_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dccm"
