"""The images themselves, by number: originals from where the run got them, small copies made once and kept."""

import hashlib
import io
import sqlite3
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from dccm.arrays import Bytes
from dccm.data.decode import picture
from dccm.data.reopen import places_in, reopened
from dccm.data.sources.base import Item, Source
from dccm.errors import UserError
from dccm.files import cache_folder
from dccm.runs.contents import StoredSource

_THUMBNAIL = 192
"""Longer side in pixels, enough for the largest tile on a fine screen."""
_TINY = 64
"""Images of this side and below lose nothing."""
_NO_PICTURE = "This image cannot be read any more; where it came from may have changed or be out of reach."


class Encoded(NamedTuple):
    """A picture as browsers take it: never the file itself, whose bytes may be anything."""

    content: bytes
    media_type: str

    def address(self) -> str:
        """An address that holds the picture itself."""
        return f"data:{self.media_type};base64,{b64encode(self.content).decode()}"


class Pictures:
    """The images of a run.

    Args:
        stored: Where they came from.
        names: One for each, in the order of the assignments.
        cache: Folder of the cache; None: the user's.
        copies: What the run keeps of some of them, by row: the last resort.
    """

    def __init__(
        self,
        stored: StoredSource,
        names: Sequence[str],
        cache: Path | None = None,
        copies: Mapping[int, Bytes] | None = None,
    ) -> None:
        self._copies = copies or {}
        self._stored, self._names = stored, names
        self._cache = cache or cache_folder()
        self._lock = threading.Lock()
        self._source: Source | None = None
        self._places: Any = None
        self._prepared = _prepared(self._cache / "images" / stored.key / "images.npy", stored) if stored.key else None
        self._kept = Thumbnails(self._cache / "thumbnails" / f"{_key(stored)}.sqlite")

    def full(self, row: int) -> Encoded:
        """An image at its full size."""
        try:
            return _encoded(picture(self._original(row)))
        except Exception as error:  # Whatever is wrong with one image, its small copy may be there.
            return _encoded(self._small(row, None, error))

    def thumbnail(self, row: int) -> Encoded:
        """A small copy of an image."""
        content = self._kept.get(row)
        if content is None:
            made = _encoded(self._thumbnail(row))
            self._kept.put(row, made.content)
            return made
        return Encoded(content, "image/png" if content.startswith(b"\x89PNG") else "image/jpeg")

    def _thumbnail(self, row: int) -> Image.Image:
        if self._prepared is not None and min(self._prepared.shape[1:3]) >= _THUMBNAIL:
            return self._small(row, _THUMBNAIL)
        try:
            return picture(self._original(row), _THUMBNAIL)
        except Exception as error:
            return self._small(row, _THUMBNAIL, error)

    def _original(self, row: int) -> Item:
        """An image as its source has it; sources read for one at a time."""
        with self._lock:
            if self._places is None:
                self._source = reopened(self._stored.place)
                self._places = [] if self._source is None else places_in(self._source, self._names)
            if self._source is None or self._places[row] < 0:
                raise UserError(_NO_PICTURE)
            return self._source.read(int(self._places[row]))

    def _small(self, row: int, largest: int | None, cause: Exception | None = None) -> Image.Image:
        """An image as it was prepared for the run."""
        pixels = self._copies.get(row) if self._prepared is None else np.array(self._prepared[row])
        if pixels is None:
            raise UserError(_NO_PICTURE) from cause
        return picture(pixels[..., :3] if pixels.shape[2] > 2 else pixels[..., 0], largest)


class Thumbnails:
    """Small copies of images in one file of the cache, which may be deleted at any time.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
        try:
            self._begin()
        except sqlite3.DatabaseError:  # A broken copy is worth nothing.
            self._database.close()
            path.unlink(missing_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
            self._begin()

    def _begin(self) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE IF NOT EXISTS thumbnails (row INTEGER PRIMARY KEY, content BLOB)")

    def get(self, row: int) -> bytes | None:
        """The copy of an image, if there is one."""
        with self._lock:
            try:
                found = self._database.execute("SELECT content FROM thumbnails WHERE row = ?", (row,)).fetchone()
            except sqlite3.Error:
                return None
        return bytes(found[0]) if found else None

    def put(self, row: int, content: bytes) -> None:
        """Keep a copy; a disk that is full only makes the next look slower."""
        with self._lock:
            try:
                self._database.execute("INSERT OR REPLACE INTO thumbnails VALUES (?, ?)", (row, content))
            except sqlite3.Error:
                return


def _encoded(image: Image.Image) -> Encoded:
    content = io.BytesIO()
    if max(image.size) <= _TINY:
        image.save(content, "png")
        return Encoded(content.getvalue(), "image/png")
    image.save(content, "jpeg", quality=88)
    return Encoded(content.getvalue(), "image/jpeg")


def _prepared(path: Path, stored: StoredSource) -> Any:
    """The pixels that the run saw, mapped from the cache; None if they are gone, or of other images."""
    try:
        images = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return None
    return images if images.shape == (stored.images, *stored.shape) and images.dtype == np.uint8 else None


def _key(stored: StoredSource) -> str:
    text = f"{stored.place}\n{stored.key}\n{stored.images}\n{stored.checksum}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]
