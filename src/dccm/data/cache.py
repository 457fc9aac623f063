"""The file of prepared images, written bit by bit so that a stop at any moment loses little, and mapped into memory.

A folder of the cache belongs to one source and one way of preparing it:

- `images.npy`: the pixels, (N, height, width, channels);
- `kept.i64` and `hashes.u64`: for each of them its number in the source and the hash of its pixels;
- `manifest.csv`: one row for everything that the source named: path, status, reason, hash;
- `manifest.json`: the source, how it was prepared, counts and checksums; written last, so it means "complete";
- `checked.json`: sizes and times of these files when their checksums were last compared;
- `progress.json`: how far the preparation is. What the files hold behind that point is cut off before it goes on.
"""

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple
from zlib import crc32

import numpy as np

from dccm.arrays import Bytes
from dccm.data.checked import HEAD, checksum
from dccm.documents import UNREADABLE, filled, read_json
from dccm.files import csv_lines, write_atomically
from dccm.locks import locked_file

FORMAT = 2
FILES = ("images.npy", "kept.i64", "hashes.u64", "manifest.csv")
SKIPPED, PASSING = "skipped", "passing"
"""Why an image is not there: for good, or as long as something beside it is wrong."""
_PIECE = 1 << 20
_COLUMNS = b"path,status,reason,hash\n"


class Outcome(NamedTuple):
    """What became of one image of the source."""

    pixels: Bytes | None
    """(height, width, channels), unless it was skipped."""
    hash: bytes
    grey: bool
    reason: str
    passing: bool = False
    """It was skipped for what the moment did, such as a permission, and not for what its bytes are."""

    @property
    def status(self) -> str:
        """In a word, for the manifest."""
        return "ok" if self.pixels is not None else PASSING if self.passing else SKIPPED


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
    checksums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FILES, 0))
    """Of those bytes; of the images without the head of their file."""


class Writer:
    """Appends to the files of one preparation; `commit` makes what was appended count."""

    def __init__(self, folder: Path, shape: tuple[int, int, int], fingerprint: str) -> None:
        self.folder, self.shape = folder, shape
        self.progress = _read_progress(folder, fingerprint)
        self._files: dict[str, IO[bytes]] = {}
        self._open = ExitStack()

    def __enter__(self) -> "Writer":
        for name in FILES:
            if not self.progress.sizes:
                # Whoever has mapped the old file keeps it; one that is cut under its map ends the process.
                (self.folder / name).unlink(missing_ok=True)
            file = self._open.enter_context((self.folder / name).open("ab"))
            file.truncate(self.progress.sizes.get(name, 0))
            self._files[name] = file
        if not self.progress.sizes:
            self._files["images.npy"].write(_header((0, *self.shape)))
            self._write("manifest.csv", _COLUMNS)
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
        self.note((name, outcome.status, outcome.reason, outcome.hash.hex()) for name, outcome in zip(names, outcomes))
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

    def join(self, part: "Writer") -> None:
        """Take in all that another preparation holds; its images follow those that are here."""
        progress = self.progress
        kept = np.fromfile(part.folder / "kept.i64", dtype=np.int64)
        self._write("kept.i64", (kept + progress.done).tobytes())
        for name, head in (("images.npy", HEAD), ("hashes.u64", 0), ("manifest.csv", len(_COLUMNS))):
            with (part.folder / name).open("rb") as file:
                file.seek(head)
                while content := file.read(_PIECE):
                    self._write(name, content)
        progress.grey &= part.progress.grey
        progress.images += part.progress.images
        progress.done += part.progress.done

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
        shape, checksums = (self.progress.images, *self.shape), self.progress.checksums
        with (self.folder / "images.npy").open("r+b") as file:
            file.write(_header(shape))
        if to_grey:
            checksums["images.npy"] = _drop_channels(self.folder / "images.npy", (*shape[:3], 1))
        for written in self._files.values():
            os.fsync(written.fileno())
        skipped = left_out + self.progress.done - self.progress.images
        counts = {"images": self.progress.images, "left_out": left_out, "skipped": skipped}
        sums = {"checksums": {name: f"{value:08x}" for name, value in checksums.items()}}
        document = {"format": FORMAT} | description | counts | sums
        write_atomically(self.folder / "manifest.json", json.dumps(document, indent=1) + "\n")
        (self.folder / "progress.json").unlink()


def is_in_use(folder: Path) -> bool:
    """Whether a process prepares in a folder of the cache at this moment."""

    def stop() -> None:
        raise BlockingIOError

    try:
        with locked(folder, stop):
            return False
    except OSError:
        return True


@contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a folder of the cache for this process alone; the lock ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)

    def wait() -> bool:
        waiting()
        return True

    with locked_file(folder / "lock", wait):
        yield


def _read_progress(folder: Path, fingerprint: str) -> Progress:
    """How far the preparation of this state of the source is; a damaged or outdated one begins anew."""
    try:
        progress = filled(Progress, read_json(folder / "progress.json"))
        known = progress.fingerprint == fingerprint
        sound = known and all(
            checksum(folder / name, progress.sizes[name]) == progress.checksums[name] for name in FILES
        )
    except UNREADABLE:
        return Progress(fingerprint)
    return progress if sound else Progress(fingerprint)


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
        colour.seek(HEAD)
        # Not by a map of the file, whose pages would all stay in memory.
        while content := colour.read(3 * _PIECE):
            pixels = content[::3]
            checksum = crc32(pixels, checksum)
            grey.write(pixels)
        grey.flush()
        os.fsync(grey.fileno())
    partial.replace(path)
    return checksum
