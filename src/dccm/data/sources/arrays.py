"""Images that are an array already."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.data.names import Names
from dccm.data.sources.base import Source
from dccm.errors import require


class ArraySource(Source):
    """Images of one shape that need no preparation.

    Args:
        images: uint8, (N, H, W, C); in memory, or mapped from a file.
        names: One for each image; None: their numbers.
        labels: True classes, (N,); for evaluation alone.
        splits: `train` or `test` for each image.
        place: Where they are; None: nowhere but in memory.
        files: What they were read from; empty: the place itself.
    """

    kind = "array"

    def __init__(
        self,
        images: Bytes,
        names: Iterable[str] | None = None,
        labels: npt.NDArray[Any] | None = None,
        splits: npt.NDArray[np.str_] | None = None,
        place: str | None = None,
        *,
        files: Sequence[Path] = (),
    ) -> None:
        require(
            images.dtype == np.uint8 and images.ndim == 4,
            f"images must be uint8 of the shape (N, H, W, C), got {images.dtype} of {images.shape}. Convert them.",
        )
        self.images = images
        names = map(str, range(len(images))) if names is None else names
        self.names = names if isinstance(names, Names) else Names(names)
        self.labels, self.splits, self.place = labels, splits, place
        for what, given in (("names", self.names), ("labels", labels), ("splits", splits)):
            require(
                given is None or len(given) == len(images),
                f"{what} must be one for each of the {len(images)} images, got {0 if given is None else len(given)}.",
            )
        # Taken when the pixels are, so that a later change of the files shows.
        self._fingerprint = stamp(files or ([Path(place)] if place and Path(place).is_file() else []))

    def read(self, index: int) -> Bytes:
        """The pixels of one image, (H, W, C)."""
        pixels: Bytes = self.images[index]
        return pixels

    def fingerprint(self) -> str:
        """Of the sizes and times of the files when they were read."""
        return self._fingerprint


def stamp(files: Iterable[Path]) -> str:
    """A word that changes when one of the files is replaced or written to."""
    digest = hashlib.sha256()
    for path in files:
        found = path.stat()
        digest.update(f"{path.name!r} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()
