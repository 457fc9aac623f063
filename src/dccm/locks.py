"""What one process has for itself: others wait, or are told who has it, and a crash frees it."""

import errno
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dccm.errors import UserError
from dccm.files import disk_error, open_regular

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
        file = _opened(path)
        if not _take(file):
            file.close()
            return None
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # Its holder was just done and has deleted it.


def _opened(path: Path) -> IO[bytes]:
    """The file of a lock, made if it is missing: a link or a pipe of a stranger is none."""
    own = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | own, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(descriptor, "r+b")


def _take(file: IO[bytes]) -> bool:
    """Lock a file, unless another process has; where the file system knows no locks, nobody can have."""
    try:
        return _lock(file, wait=False)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
    return True


def _holder(path: Path) -> str:
    with suppress(OSError), open_regular(path) as file:
        return file.read(_LONGEST).decode("utf-8", "replace") or "another process"
    return "another process"


@contextmanager
def locked_file(path: Path, waiting: Callable[[], bool]) -> Iterator[bool]:
    """Hold a file for this process alone; the lock ends with the process, however that ends.

    Args:
        path: The file; it is made, and stays.
        waiting: Called if another process holds it; whether to wait for that.

    Yields:
        Whether it is held: always, if `waiting` is true.
    """
    with _opened(path) as file:
        yield _lock(file, wait=False) or (waiting() and _lock(file, wait=True))


def _lock(file: IO[bytes], *, wait: bool) -> bool:
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        while True:  # "LK_LOCK" gives up after ten seconds.
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if not wait:
                    return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
