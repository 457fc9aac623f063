"""The file of prepared images, written bit by bit so that a stop at any moment loses little, and mapped into memory.

A folder of the cache belongs to one source and one way of preparing it:

- `images.npy`: the pixels, (N, height, width, channels);
- `kept.i64` and `hashes.u64`: for each of them its number in the source and the hash of its pixels;
- `manifest.csv`: one row for everything that the source named: path, status, reason, hash;
- `manifest.json`: the source, how it was prepared, counts and a checksum; written last, so it means "complete";
- `progress.json`: how far the preparation is. What the files hold behind that point is cut off before it goes on.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.data.duplicates import Hashes
from dccm.data.images import Skipped
from dccm.files import csv_lines, read_csv, write_atomically

FORMAT = 1
_FILES = ("images.npy", "kept.i64", "hashes.u64", "manifest.csv")
_HEAD = 128
"""Bytes of the head of an .npy file of images."""
_PIECE = 1 << 20


class Outcome(NamedTuple):
    """What became of one image of the source."""

    pixels: Bytes | None
    """(height, width, channels), unless it was skipped."""
    hash: bytes
    grey: bool
    reason: str


@dataclass
class Progress:
    """How far a preparation is."""

    fingerprint: str
    done: int = 0
    """Images of the source that have been tried."""
    images: int = 0
    """Of them, those that could be read."""
    grey: bool = True
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each file that count."""
    checksums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_FILES, 0))
    """Of those bytes; of the images without the head of their file."""


@dataclass(frozen=True)
class Prepared:
    """A finished preparation."""

    images: Bytes
    kept: npt.NDArray[np.int64]
    hashes: Hashes
    skipped: list[Skipped]
    checksum: str
    """Of the pixels."""


class Writer:
    """Appends to the files of one preparation; `commit` makes what was appended count."""

    def __init__(self, folder: Path, shape: tuple[int, int, int], fingerprint: str) -> None:
        self.folder, self.shape = folder, shape
        self.progress = _read_progress(folder, fingerprint)
        self._files: dict[str, IO[bytes]] = {}
        self._open = ExitStack()

    def __enter__(self) -> "Writer":
        for name in _FILES:
            if not self.progress.sizes:
                # Whoever has mapped the old file keeps it; one that is cut under its map ends the process.
                (self.folder / name).unlink(missing_ok=True)
            file = self._open.enter_context((self.folder / name).open("ab"))
            file.truncate(self.progress.sizes.get(name, 0))
            self._files[name] = file
        if not self.progress.sizes:
            self._files["images.npy"].write(_header((0, *self.shape)))
            self._write("manifest.csv", b"path,status,reason,hash\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()  # All of them, even if the disk is too full for the rest of one.

    def append(self, names: Iterable[str], outcomes: list[Outcome]) -> None:
        """Take in the next images of the source."""
        progress = self.progress
        good = [number for number, outcome in enumerate(outcomes) if outcome.pixels is not None]
        pixels = b"".join(outcomes[number].pixels.tobytes() for number in good)  # type: ignore[union-attr]
        self._write("images.npy", pixels)
        self._write("kept.i64", (np.array(good, dtype=np.int64) + progress.done).tobytes())
        self._write("hashes.u64", b"".join(outcomes[number].hash for number in good))
        self.note(
            (name, "skipped" if outcome.pixels is None else "ok", outcome.reason, outcome.hash.hex())
            for name, outcome in zip(names, outcomes)
        )
        progress.grey &= all(outcomes[number].grey for number in good)
        progress.images += len(good)
        progress.done += len(outcomes)

    def note(self, rows: Iterable[tuple[str, str, str, str]]) -> None:
        """Add rows to the manifest; names of files may be any bytes."""
        text = "".join(csv_lines(rows))
        self._write("manifest.csv", text.encode("utf-8", "surrogateescape"))

    def _write(self, name: str, content: bytes) -> None:
        self._files[name].write(content)
        self.progress.checksums[name] = crc32(content, self.progress.checksums[name])

    def commit(self) -> None:
        """From here on a stopped preparation goes on behind what was appended so far.

        Nothing waits for the disk here: if the machine fails, what did not reach it shows in the checksums.
        """
        for name, file in self._files.items():
            file.flush()
            self.progress.sizes[name] = file.tell()
        partial = self.folder / "progress.partial"
        partial.write_text(json.dumps(asdict(self.progress)), encoding="utf-8")
        partial.replace(self.folder / "progress.json")

    def finish(self, description: dict[str, Any], *, left_out: int, to_grey: bool) -> None:
        """Make the preparation complete.

        Args:
            description: What the manifest says of source and preparation.
            left_out: What the source itself had left out.
            to_grey: Keep one channel of three equal ones.
        """
        self.commit()
        shape, checksum = (self.progress.images, *self.shape), self.progress.checksums["images.npy"]
        with (self.folder / "images.npy").open("r+b") as file:
            file.write(_header(shape))
        if to_grey:
            checksum = _drop_channels(self.folder / "images.npy", (*shape[:3], 1))
        for written in self._files.values():
            os.fsync(written.fileno())
        skipped = left_out + self.progress.done - self.progress.images
        counts = {"images": self.progress.images, "skipped": skipped}
        document = {"format": FORMAT} | description | counts | {"checksum": f"{checksum:08x}"}
        write_atomically(self.folder / "manifest.json", json.dumps(document, indent=1) + "\n")
        (self.folder / "progress.json").unlink()


def open_prepared(folder: Path, fingerprint: str) -> Prepared | None:
    """What a folder of the cache holds, if it is complete and of this state of the source."""
    manifest = read_manifest(folder)
    if manifest is None or manifest["fingerprint"] != fingerprint:
        return None
    try:
        images = np.load(folder / "images.npy", mmap_mode="r", allow_pickle=False)
        kept = np.fromfile(folder / "kept.i64", dtype=np.int64)
        hashes = np.fromfile(folder / "hashes.u64", dtype=np.uint64)
        skipped = read_skipped(folder) if manifest["skipped"] else []
        checksum = str(manifest["checksum"])
    except (OSError, EOFError, ValueError, KeyError):
        return None
    sound = len(images) == len(kept) == len(hashes) == manifest["images"] and len(skipped) == manifest["skipped"]
    return Prepared(images, kept, hashes, skipped, checksum) if sound else None


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a complete preparation."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        return manifest if manifest["format"] == FORMAT and "fingerprint" in manifest else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a folder of the cache for this process alone; the lock ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read_progress(folder: Path, fingerprint: str) -> Progress:
    """How far the preparation of this state of the source is; a damaged or outdated one begins anew."""
    try:
        progress = Progress(**json.loads((folder / "progress.json").read_text(encoding="utf-8")))
        known = progress.fingerprint == fingerprint
        sound = known and all(
            _checksum(folder / name, progress.sizes[name]) == progress.checksums[name] for name in _FILES
        )
    except (OSError, ValueError, TypeError, KeyError):
        return Progress(fingerprint)
    return progress if sound else Progress(fingerprint)


def _checksum(path: Path, size: int) -> int | None:
    """The checksum of the first bytes of a file, behind its head if it has one; None if there are fewer."""
    left, value = size, 0
    with path.open("rb") as file:
        if path.suffix == ".npy":
            left -= len(file.read(_HEAD))
        while left > 0 and (content := file.read(min(left, _PIECE))):
            left -= len(content)
            value = crc32(content, value)
    return None if left else value


def read_skipped(folder: Path) -> list[Skipped]:
    """What the manifest says was left out."""
    rows = read_csv(folder / "manifest.csv", ("path", "status", "reason", "hash"), "prepare anew", exactly=True)
    return [Skipped(row["path"], row["reason"]) for row in rows if row["status"] == "skipped"]


def _header(shape: tuple[int, ...]) -> bytes:
    """The head of an .npy file; NumPy leaves room in it for any number of images, so its length stays the same."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def _drop_channels(path: Path, shape: tuple[int, ...]) -> int:
    """Keep the first channel of each image; returns the checksum of what is left."""
    partial = path.with_name("grey.partial")
    checksum = 0
    with path.open("rb") as colour, partial.open("wb") as grey:
        grey.write(_header(shape))
        colour.seek(_HEAD)
        # Not by a map of the file, whose pages would all stay in memory.
        while content := colour.read(3 * _PIECE):
            pixels = content[::3]
            checksum = crc32(pixels, checksum)
            grey.write(pixels)
        grey.flush()
        os.fsync(grey.fileno())
    partial.replace(path)
    return checksum
