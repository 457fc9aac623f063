"""Files that are written whole or not at all, tables of text, and where those live that may be deleted at any time."""

import csv
import errno
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO

from dccm.errors import UserError, require

_LONGEST_FIELD = 1024 * 1024
"""Characters; the names that sources give are far shorter."""
_ROWS_AT_ONCE = 1000
OUT_OF = {
    errno.EMFILE: "open files of this process (ulimit -n)",
    errno.ENFILE: "open files of this machine",
    errno.ENOMEM: "memory",
}
"""What a system may run out of, beside room on the disk: no other file would fare better."""
_MOST_COLUMNS = 1000


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file to read it; anything else is refused: a pipe makes wait for ever, a device has no end."""
    # Without O_NONBLOCK to open a pipe would wait already; regular files do not care.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a whole file, or leave what was there."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file under another name, flush it to the disk, then give it its name: it is never half there."""
    if not path.name:  # This folder, or the root of all.
        raise UserError(f"Cannot write {path}: it is a folder. Name a file.")
    if _is_of_a_device(path):  # Whoever may do so would put a file in its place, for all programs of the machine.
        raise UserError(f"Cannot write {path}: it is a device or lies among them. Name another file.")
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)  # Of a kill; or a stranger's link, through which nothing is written.
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        again = "then begin again, or resume a run that was training"
        raise disk_error(error, f"write {path}", "what was there is unharmed", again, "output folder") from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _is_of_a_device(path: Path) -> bool:
    """Whether a name belongs to a device, also by a link, or lies where devices do."""
    if path.absolute().parent == Path("/dev"):
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # It is not there, or what is wrong with it is found on writing.
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def amount(size: int) -> str:
    """So many bytes as people say it."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit / 10:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


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
    if error.errno in OUT_OF:
        return UserError(f"Out of {OUT_OF[error.errno]} to {doing}; {kept}. Allow more, {again}.")
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


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV; names of files may hold commas, quotes, newlines or bytes that are no text."""
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")
        text.writelines(csv_lines(chain([header], rows)))
        text.flush()
        text.detach()


def read_csv(path: Path, columns: Sequence[str], repair: str, *, exactly: bool = False) -> Iterator[dict[str, str]]:
    """The rows of a CSV file by column name, one by one; names of files may be any bytes.

    Args:
        path: The file.
        columns: What its first line must name.
        repair: The way out if it is broken, behind a semicolon.
        exactly: It is a file of ours: there is no other column, and each row is complete. Otherwise more columns are
            fine, and what a row lacks at its end is empty, as spreadsheets write it.
    """
    try:
        # Some programs begin text with a mark of its byte order, which "utf-8-sig" leaves out.
        with open_regular(path) as file:
            text = io.TextIOWrapper(file, newline="", encoding="utf-8-sig", errors="surrogateescape")
            rows = _rows_of_any_length(csv.reader(text, strict=True))
            header = next(rows, [])
            _require_columns(header, columns, exactly)
            for row in rows:
                _require_values(row, len(header), exactly)
                yield dict(zip(header, row + [""] * (len(header) - len(row))))
    except (csv.Error, OSError, ValueError) as error:
        raise UserError(f"{path} is broken ({getattr(error, 'strerror', None) or error}); {repair}.") from error


def _rows_of_any_length(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """All rows but empty ones; the limit of a field is the whole process's, and is back in place when others run."""
    while True:
        limit = csv.field_size_limit(_LONGEST_FIELD)
        try:
            rows = list(islice(reader, _ROWS_AT_ONCE))
        finally:
            csv.field_size_limit(limit)
        if not rows:
            return
        yield from filter(None, rows)


def _require_columns(header: list[str], columns: Sequence[str], exactly: bool) -> None:
    if exactly:
        require(header == list(columns), f"its first line is not {','.join(columns)}")
    require(len(header) <= _MOST_COLUMNS, f"its first line names {len(header):,} columns, more than {_MOST_COLUMNS:,}")
    missing = [f"'{name}'" for name in columns if name not in header]
    require(not missing, f"its first line names no column {' and no column '.join(missing)}")


def _require_values(row: list[str], count: int, exactly: bool) -> None:
    if exactly:
        require(len(row) == count, f"a line without exactly {count} values")
    require(len(row) <= count, f"a line with {len(row)} values under {count} column names")


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
