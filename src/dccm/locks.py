"""A folder that one process fills: others are told who does, and a crash frees it."""

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dccm.errors import UserError
from dccm.files import disk_error

_LONGEST = 200
"""Bytes of a lock that are read: it says who holds it."""


@contextmanager
def held(path: Path, folder: str) -> Iterator[None]:
    """Hold a lock for this process alone; the system takes it back when the process ends, however that happens.

    Args:
        path: The file that stands for it; it is deleted when all is done, and of no meaning when it was left behind.
        folder: What the lock is for, as the user calls it.
    """
    try:
        file = _locked(path)
    except OSError as error:
        again = "then begin again, or resume a run that was training"
        raise disk_error(error, f"write {path}", "what was there is unharmed", again, "output folder") from error
    if file is None:
        raise UserError(
            f"{folder} is being filled by {_holder(path)}. Wait until it is done, or choose another folder."
        )
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        file.flush()
        yield
    finally:
        with suppress(OSError):  # Where open files cannot be deleted it stays, as after a crash.
            path.unlink()
        file.close()


def _locked(path: Path) -> IO[bytes] | None:
    """The file of a lock that was free; None: another process holds it."""
    while True:
        file = path.open("a+b")
        if not _take(file):
            file.close()
            return None
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # Its holder was just done and has deleted it.


def _take(file: IO[bytes]) -> bool:
    """Lock a file, unless another process has; where the file system knows no locks, nobody can have."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
    return True


def _holder(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_LONGEST).decode("utf-8", "replace") or "another process"
    return "another process"
