"""Downloads that are checked, that go on where they were cut, and that never leave a wrong file under its name."""

import functools
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from dccm.errors import UserError, require
from dccm.files import amount, disk_error

OnBytes = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes in all."""

_SECONDS = 30.0
"""How long a server may be silent."""
_PAUSES = (1.0, 2.0, 4.0)
"""Seconds before each new attempt that follows one without any gain."""
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be better the next time."""
_BLOCK = 1 << 18


class Remote(NamedTuple):
    """A file on a server, and the checksum that its authors publish."""

    url: str
    md5: str
    size: int

    @property
    def name(self) -> str:
        """What the file is called."""
        return self.url.rpartition("/")[2]


def fetch(remotes: Sequence[Remote], folder: Path, on_progress: OnBytes | None = None) -> None:
    """Download what is not in the folder yet, checked by its md5 sum.

    Args:
        remotes: The files; progress is that of all together.
        folder: Where they go; it is made if need be.
        on_progress: Called with bytes done and bytes in all.
    """
    total = sum(remote.size for remote in remotes)
    before = 0
    with _on_disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        absent = [remote for remote in remotes if not (folder / remote.name).is_file()]
        _require_room(absent, folder)
        for remote in remotes:
            if remote in absent:
                _fetch_one(remote, folder / remote.name, functools.partial(_tell, on_progress, total, before))
            before += remote.size
            _tell(on_progress, total, before)


def _tell(on_progress: OnBytes | None, total: int, before: int, done: int = 0) -> None:
    if on_progress is not None:
        on_progress(before + done, total)


def _fetch_one(remote: Remote, target: Path, on_progress: Callable[[int], None]) -> None:
    """Try until the file is there, as long as each attempt or the next few bring it further."""
    partial = target.with_name(target.name + ".partial")
    farthest, failures = _size(partial), 0
    resumed = farthest > 0
    while True:
        try:
            _go_on(remote, partial, on_progress)
        except (OSError, HTTPException) as error:
            failures = 0 if _size(partial) > farthest else failures + 1
            farthest = max(farthest, _size(partial))
            if failures > len(_PAUSES) or (isinstance(error, HTTPError) and error.code not in _PASSING):
                raise _unreachable(remote, target, error) from error
            time.sleep(_PAUSES[max(failures - 1, 0)])
            continue
        found = _md5(partial)
        if found == remote.md5:
            with _on_disk(target):
                partial.replace(target)
            return
        partial.unlink()
        require(resumed, _wrong(remote, target, found))
        resumed = False  # The old beginning may have been of another file; without it, one more time.


def _go_on(remote: Remote, partial: Path, on_progress: Callable[[int], None]) -> None:
    """Append to the beginning that is there, or begin anew if the server cannot."""
    start = _size(partial)
    if start == remote.size:
        return
    if start > remote.size:
        start = 0
    with urlopen(_request(remote.url, start), timeout=_SECONDS) as response:
        done = start if response.status == 206 else 0
        end = done + int(response.headers["Content-Length"] or remote.size - done)
        with _on_disk(partial):
            file = partial.open("ab" if done else "wb")
        with file:
            for block in _blocks(response):
                with _on_disk(partial):
                    file.write(block)
                    file.flush()
                done += len(block)
                on_progress(done)
    if done < end:
        raise ConnectionError("the connection was cut")


def _request(url: str, start: int) -> Request:
    return Request(url, headers={"User-Agent": "dccm", **({"Range": f"bytes={start}-"} if start else {})})


def _blocks(response: HTTPResponse) -> Iterator[bytes]:
    while block := response.read(_BLOCK):
        yield block


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _require_room(remotes: Sequence[Remote], folder: Path) -> None:
    needed = sum(remote.size - _size(folder / f"{remote.name}.partial") for remote in remotes)
    free = shutil.disk_usage(folder).free
    require(
        free > needed,
        f"{', '.join(remote.name for remote in remotes)} must be downloaded into {folder}, {amount(needed)}, and "
        f"{amount(free)} are free there. Free some space, or choose another data_root.",
    )


@contextmanager
def _on_disk(path: Path) -> Iterator[None]:
    """Tells trouble with the disk from trouble with the network; both are `OSError`."""
    try:
        yield
    except OSError as error:
        again = "then try again: it goes on from there, or choose another data_root"
        kept = "what has come so far is kept"
        raise disk_error(error, f"write {path}", kept, again, "data_root") from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time download into a folder, where the system can lock one."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some network drives know no locks.
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _unreachable(remote: Remote, target: Path, error: Exception) -> UserError:
    reason = f"the server answers {error.code} {error.reason}" if isinstance(error, HTTPError) else _reason(error)
    return UserError(
        f"{remote.name} cannot be downloaded from {remote.url}: {reason}. Go online and try again, "
        f"or put the file into {target.parent} yourself, or say as data_root in which folder it is."
    )


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, URLError) else error
    return str(getattr(inner, "strerror", None) or inner or type(inner).__name__)


def _wrong(remote: Remote, target: Path, found: str) -> str:
    return (
        f"What came from {remote.url} is not the published file: its md5 sum must be {remote.md5}, got {found}; it "
        f"was deleted. Try again later, or put the file into {target.parent} yourself."
    )
