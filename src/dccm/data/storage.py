"""Files wherever fsspec finds them: on a disk, in a bucket, in memory. They are listed, fetched and put whole.

Whoever is refused by a storage is told in one sentence what was wanted of it. Credentials and addresses of servers are
the business of fsspec and its packages, which read them from the environment.
"""

import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dccm.data.passing import require_means
from dccm.errors import UserError, require
from dccm.files import disk_error

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")
"""How addresses begin; two letters at least, as one is a disk of Windows."""
_STAMPS = ("ETag", "etag", "md5Hash", "blob_id", "mtime", "LastModified", "last_modified", "updated", "created")
"""What the packages of fsspec call that which changes when a file does."""
_LONGEST = 300


class Stored(NamedTuple):
    """A file as a listing tells of it."""

    place: str
    """Its path or address."""
    size: int
    """Bytes; 0: the storage does not say."""
    stamp: str
    """Changes when the file does."""


@dataclass(frozen=True)
class Found:
    """What is at a place."""

    base: str
    """What all places begin with; behind it are the names of the files."""
    files: list[Stored]
    """In the order of their places."""

    def name(self, file: Stored) -> str:
        """What a file is called below the place that was named."""
        return file.place.removeprefix(self.base).lstrip("/")


def is_address(text: str) -> bool:
    """Whether this is no path of this machine but an address such as s3://bucket/photos."""
    return _ADDRESS.match(text) is not None


def files_at(place: str) -> Found:
    """A file, all files below a folder, or those that a pattern such as `shards/*.tar` fits."""
    return _in_storage(place) if is_address(place) else _on_disk(place)


def _on_disk(place: str) -> Found:
    # Links to folders are not followed: they may go round in circles.
    path = Path(place)
    pattern = not path.exists() and glob.has_magic(place)
    tops = [Path(found) for found in glob.glob(str(path), recursive=True)] if pattern else [path]  # noqa: PTH207
    files = {str(file) for top in tops for file in (top.rglob("*") if top.is_dir() else [top]) if file.is_file()}
    base = "" if path == Path() else _base(str(path), pattern, path.is_file())
    return Found(base, [_stored_on_disk(Path(file)) for file in sorted(files)])


def _stored_on_disk(path: Path) -> Stored:
    found = path.stat()
    return Stored(str(path), found.st_size, f"{found.st_size} {found.st_mtime_ns}")


def _in_storage(place: str) -> Found:
    storage, path = _storage(place)
    with reached(place, "list"):
        storage.invalidate_cache()
        pattern, one = glob.has_magic(path), False
        if pattern:
            listed = storage.glob(path, detail=True)
            for folder in [name for name, known in listed.items() if known["type"] == "directory"]:
                listed |= storage.find(folder, detail=True)
        else:
            one = storage.isfile(path)
            listed = {path: storage.info(path)} if one else storage.find(path, detail=True)
    files = [
        Stored(storage.unstrip_protocol(name), int(known.get("size") or 0), _stamp(known))
        for name, known in sorted(listed.items())
        if known["type"] == "file" and ".." not in name.split("/")
    ]
    return Found(_base(storage.unstrip_protocol(path), pattern, one), files)


def _base(place: str, pattern: bool, one: bool) -> str:
    """The folder that names are below."""
    if pattern:
        parts = place.split("/")
        fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
        return "/".join(parts[:fixed])
    return place.rpartition("/")[0] if one else place.rstrip("/")


def _stamp(known: dict[str, Any]) -> str:
    mark = next((str(known[name]) for name in _STAMPS if known.get(name)), "")
    return f"{known.get('size')} {mark}"


def read_stored(place: str) -> bytes:
    """The content of a file."""
    if not is_address(place):
        return Path(place).read_bytes()
    storage, path = _storage(place)
    with reached(place, "read"):
        content: bytes = storage.cat_file(path)
    return content


def fetch(file: Stored, folder: Path) -> Path:
    """A file on a disk of this machine: itself if it is there already, else a copy in a folder."""
    if not is_address(file.place):
        return Path(file.place)
    storage, path = _storage(file.place)
    copy = folder / file.place.rpartition("/")[2]
    with reached(file.place, "fetch"):
        try:
            storage.get_file(path, str(copy))
        except OSError as error:
            if error.errno is None or error.filename != str(copy):
                raise
            raise disk_error(
                error,
                f"keep a copy of {file.place}",
                "nothing is lost",
                "then begin again",
                "folder for temporary files (TMPDIR)",
            ) from error
    got = copy.stat().st_size
    if file.size not in (0, got):
        raise OSError(f"{got:,} of its {file.size:,} bytes came, or it has changed since it was listed")
    return copy


def put(copy: Path, place: str) -> None:
    """Give a file on a disk of this machine its place: it is there whole, or not at all."""
    if not is_address(place):
        _put_on_disk(copy, Path(place))
        return
    storage, path = _storage(place)
    with reached(place, "write"):
        storage.makedirs(storage._parent(path), exist_ok=True)
        storage.put_file(str(copy), path)


def _put_on_disk(copy: Path, path: Path) -> None:
    # Two that put the same file at once do not write into one.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("rb") as content, partial.open("wb") as file:
            shutil.copyfileobj(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        again = "then begin again"
        raise disk_error(error, f"write {path}", "what was there is unharmed", again, "output folder") from error


@contextmanager
def opened_file(place: str) -> Iterator[Any]:
    """A file, of which some parts are read."""
    if not is_address(place):
        with Path(place).open("rb") as file:
            yield file
        return
    storage, path = _storage(place)
    with reached(place, "read"), storage.open(path, "rb") as file:
        yield file


def _storage(place: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    import fsspec

    require(
        re.match(r"[^/]*//[^/]*:[^/]*@", place) is None,
        "An address may hold no password: it would stand in files and messages. Give it in the environment.",
    )
    with reached(place, "open"):
        storage, path = fsspec.core.url_to_fs(place)
    return storage, path


@contextmanager
def reached(place: str, doing: str) -> Iterator[None]:
    """Say in a sentence what a storage refused; its packages raise what they like."""
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        reason = f"{error}".rstrip(".")
        raise UserError(
            f"{place} needs a package for its storage ({reason}). Get those for s3, gs and hf with: "
            "pip install 'dccm[cloud]'"
        ) from error
    except Exception as error:
        require_means(error)
        raise UserError(f"Cannot {doing} {place}: {_reason(error)}. {_way_out(error)}") from error


def _reason(error: Exception) -> str:
    text = " ".join(str(getattr(error, "strerror", None) or error).split())[:_LONGEST].rstrip(".")
    return text or type(error).__name__


def _way_out(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "Check the address."
    if isinstance(error, ValueError) and "rotocol" in str(error):
        return "Give a path, or an address that fsspec knows, such as s3://bucket/photos."
    kind = type(error).__name__
    if isinstance(error, PermissionError) or any(word in kind for word in ("Credential", "Token", "Auth")):
        return "Give credentials that may do so, in the environment."
    return "Check address, network and credentials, and begin again."
