"""The images of a run as they are where it got them: files, bytes of files, or pixels."""

import io
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from dccm.data.decode import MOST_BYTES, SUFFIXES, picture
from dccm.data.read import open_source
from dccm.data.reopen import places_in, reopened
from dccm.data.sources.base import Item, Source
from dccm.errors import UserError, counted, require
from dccm.files import open_regular
from dccm.runs.contents import StoredSource
from dccm.runs.directory import RunDirectory

WITHOUT_IMAGES = "Say where they are now with --images, or export csv, jsonl or parquet, which need none"
_THUMBNAIL = 192
"""Longer side in pixels."""
_TINY = 64
_GONE = "it is not there any more"


class Encoded(NamedTuple):
    """An image as the content of a file."""

    content: bytes
    suffix: str


class Originals:
    """The images of a run; its source is opened when the first one is asked for.

    Args:
        directory: The run.
        names: Of the images, in the order of the assignments.
        images: Where they are now, as for `open_source`; None: where the run got them.
    """

    def __init__(self, directory: RunDirectory, names: Sequence[str], images: Any = None) -> None:
        self._directory, self._names, self._images = directory, names, images
        self._source: Source | None = None
        self._places: Any = None

    @property
    def source(self) -> Source:
        """Where the images are, opened; a sentence says why if it cannot be."""
        if self._source is None:
            self._source = self._opened()
            self._places = places_in(self._source, self._names)
        return self._source

    def require_any(self) -> None:
        """Refuse a source that is gone, or that holds no image of the run."""
        place = self.source.place or self.source.kind
        require(
            bool((self._places >= 0).any()),
            f"{self._directory.path} is of {counted(len(self._names), 'image')}, and none is in {place} any more. "
            f"{WITHOUT_IMAGES}.",
        )

    def _opened(self) -> Source:
        if self._images is not None:
            return open_source(self._images)
        stored = stored_source(self._directory)
        try:
            source = reopened(stored.place if stored else "")
        except (UserError, OSError) as error:
            why = str(error).partition(". ")[0].rstrip(".")
            raise UserError(
                f"The images of {self._directory.path} are not where they were: {why}. {WITHOUT_IMAGES}."
            ) from error
        if source is None:
            raise UserError(f"The images of {self._directory.path} were only in memory. {WITHOUT_IMAGES}.")
        return source

    def place_of(self, row: int) -> int:
        """The number of an image in its source; below zero where it is gone."""
        assert self.source is not None
        return int(self._places[row])

    def item(self, row: int) -> Item:
        """One image as its source has it; sources like to be read in rising order."""
        place = self.place_of(row)
        if place < 0:
            raise FileNotFoundError(_GONE)
        return self.source.read(place)

    def require_files(self) -> None:
        """Refuse a source whose images are no files of their own."""
        first = self.item(int(np.argmax(self._places >= 0)))
        require(
            isinstance(first, Path),
            f"symlinks need images that are files of their own, and those of {self._directory.path} come from a "
            f"{self.source.kind}. Take folders, which writes them.",
        )

    def file(self, row: int) -> Path:
        """The file that an image is."""
        item = self.item(row)
        if not isinstance(item, Path) or not item.is_file():
            raise FileNotFoundError(_GONE)
        return item.absolute()

    def encoded(self, row: int) -> Encoded:
        """One image as the content of a file: files under the name of an image stay as they are, others become PNG."""
        item = self.item(row)
        name = item.name if isinstance(item, Path) else self._names[row].replace("\\", "/")
        suffix = PurePosixPath(name).suffix.lower()
        if suffix not in SUFFIXES or not isinstance(item, Path | bytes):
            return Encoded(as_png(item), ".png")
        return Encoded(item if isinstance(item, bytes) else _content(item), suffix)


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"the file has more than {MOST_BYTES:,} bytes")
    return content


def as_png(item: Item) -> bytes:
    """An image as PNG, upright, with 8 bits, grey or colour."""
    buffer = io.BytesIO()
    picture(item).save(buffer, "png")
    return buffer.getvalue()


def as_thumbnail(item: Item) -> bytes:
    """A small copy of an image: as PNG where that is tiny, else as JPEG."""
    small, buffer = picture(item, _THUMBNAIL), io.BytesIO()
    if max(small.size) <= _TINY:
        small.save(buffer, "png")
    else:
        small.save(buffer, "jpeg", quality=88)
    return buffer.getvalue()


def stored_source(directory: RunDirectory) -> StoredSource | None:
    """What a run noted of where its images came from; None: it is of an older version."""
    return directory.read_source() if directory.source.is_file() else None
