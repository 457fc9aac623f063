"""Images as the page holds them: data URIs, and one sheet of many tiny ones."""

import base64
import io
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dccm.arrays import Bytes
from dccm.report.gathered import RunFiles

_SHOWN = 96
"""Pixels of an image of a sheet as it is shown."""
_MANY = 1500
"""From here on thumbnails are made smaller, so that the page stays at a few megabytes."""


class Thumbnail(NamedTuple):
    """An image on the page."""

    uri: str
    path: str
    confidence: float


class Sheet(NamedTuple):
    """Many tiny images in one, row by row."""

    uri: str
    columns: int
    rows: int
    width: int
    height: int
    """Of one of them, in pixels."""

    @property
    def zoom(self) -> int:
        """How many times larger one is shown."""
        return max(1, round(_SHOWN / max(self.width, self.height)))


class Pictures:
    """The images that a run keeps, each encoded once, when it is first shown.

    Args:
        run: The run.
    """

    def __init__(self, run: RunFiles) -> None:
        self._run = run
        self._places = {int(row): place for place, row in enumerate(run.thumbnails.row)}
        self._uris: dict[int, str] = {}
        self._many = len(run.thumbnails.row) > _MANY

    def __contains__(self, row: int) -> bool:
        return row in self._places

    @property
    def rows(self) -> NDArray[np.int64]:
        """Those that are there."""
        return self._run.thumbnails.row

    def uri(self, row: int) -> str:
        """The image of a row; empty if it is not kept."""
        if row not in self._places:
            return ""
        if row not in self._uris:
            self._uris[row] = image_uri(self._run.thumbnails.images[self._places[row]], many=self._many)
        return self._uris[row]

    def thumbnail(self, row: int) -> Thumbnail:
        """The image of a row, with what is known of it."""
        assignments = self._run.assignments
        return Thumbnail(self.uri(row), assignments.paths[row], float(assignments.confidences[row]))


def image_uri(pixels: Bytes, *, many: bool = False) -> str:
    """An image as a data URI: PNG if it is tiny, else JPEG; large ones are shrunk.

    Args:
        pixels: (H, W, C); of many channels the first three are shown, of two the first.
        many: Whether the page holds so many that each has to be smaller.
    """
    image = _image(pixels)
    largest, lossless = (48, 16) if many else (96, 32)
    image.thumbnail((largest, largest))
    return _uri(image, "png" if max(image.size) <= lossless else "jpeg")


def sheet(images: Bytes) -> Sheet:
    """All images on one sheet that is about square."""
    count, height, width, channels = images.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    tiles = np.zeros((rows * columns, height, width, channels), np.uint8)
    tiles[:count] = images
    pixels = tiles.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    uri = _uri(_image(pixels.reshape(rows * height, columns * width, channels)), "png" if height <= 16 else "jpeg")
    return Sheet(uri, columns, rows, width, height)


def _image(pixels: Bytes) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(pixels[:, :, :3] if pixels.shape[2] >= 3 else pixels[:, :, 0]))


def _uri(image: Image.Image, kind: str) -> str:
    content = io.BytesIO()
    image.save(content, kind, quality=85, optimize=True)
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode('ascii')}"
