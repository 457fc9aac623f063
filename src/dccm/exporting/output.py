"""A file or folder that appears under its name when all of it is there, or not at all."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dccm import __version__
from dccm.errors import UserError, require
from dccm.files import disk_error, write_atomically
from dccm.locks import held

MARK = "export.json"
"""In every folder that was exported: what is in it, and that it may be replaced as a whole."""


@contextmanager
def made_whole(path: Path, *, folder: bool, overwrite: bool = False) -> Iterator[Path]:
    """Make a file or folder under another name, then give it its own.

    Args:
        path: Its name.
        folder: Whether it is a folder.
        overwrite: Whether what has the name already is replaced: a file, or the folder of an earlier export.

    Yields:
        A file to be written, or an empty folder to be filled.
    """
    require_free(path, folder=folder, overwrite=overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with held(path.with_name(f".{path.name}.lock"), str(path)):
            require_free(path, folder=folder, overwrite=overwrite)
            partial = _begun(path, folder)
            try:
                yield partial
                _flush(partial)
                _put(partial, path)
            except BaseException:
                _remove(partial)
                raise
    except OSError as error:
        raise _not_written(error, path) from error
    except UserError as error:  # Of a file inside, of which nobody has heard.
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _not_written(error.__cause__, path) from error
        raise


def _not_written(error: OSError, path: Path) -> UserError:
    kept = "nothing of it is left behind, and what was there is unharmed"
    return disk_error(error, f"write {path}", kept, "then export again", "output")


def mark(folder: Path, facts: dict[str, Any]) -> None:
    """Say in a folder what it holds."""
    write_atomically(folder / MARK, json.dumps({"written_by": f"dccm {__version__}"} | facts, indent=1) + "\n")


def require_free(path: Path, *, folder: bool, overwrite: bool) -> None:
    """Refuse a name that something has already, unless it may be replaced."""
    if not os.path.lexists(path):
        return
    way = "Choose another one with -o, or replace it with --overwrite"
    require(overwrite, f"The output {path} exists already, and nothing is overwritten unasked. {way}.")
    if folder:
        sound = path.is_dir() and not path.is_symlink() and (path / MARK).is_file()
        require(sound, f"{path} is no folder of an earlier export, so it is not replaced. Choose another one with -o.")
    else:
        sound = path.is_file() and not path.is_symlink()
        require(sound, f"{path} is no regular file, so it is not replaced. Choose another one with -o.")


def _begun(path: Path, folder: bool) -> Path:
    """The other name; what an export that was killed left there is deleted, and nothing else."""
    partial = path.with_name(path.name + ".partial")
    if os.path.lexists(partial):
        ours = (partial / MARK).is_file() if partial.is_dir() and not partial.is_symlink() else partial.is_file()
        require(ours, f"{partial} is in the way, and is of no export. Move it away, or choose another output with -o.")
        _remove(partial)
    if folder:
        partial.mkdir()
        mark(partial, {"complete": False})
    return partial


def _put(partial: Path, path: Path) -> None:
    """Give what is complete its name; the folder that had it is deleted last."""
    if not path.is_dir():
        partial.replace(path)
        return
    old = path.with_name(path.name + ".old")
    _remove(old) if (old / MARK).is_file() else None
    path.replace(old)
    try:
        partial.replace(path)
    except OSError:
        old.replace(path)
        raise
    _remove(old)


def _flush(path: Path) -> None:
    """Bring a file to the disk before it has its name; of a folder, the system does in its time."""
    if path.is_file():
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def _remove(path: Path) -> None:
    """Delete a file or folder of ours; links in it are deleted, not followed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
