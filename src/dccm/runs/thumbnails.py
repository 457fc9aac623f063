"""Small pictures in a run directory: those that the report shows, and smaller ones for its map."""

import io
from pathlib import Path

import numpy as np

from dccm.arrays import Bytes
from dccm.data.resize import resized
from dccm.documents import check
from dccm.files import write_atomically
from dccm.npy import read_arrays
from dccm.runs.contents import Thumbnails
from dccm.runs.members import Rows

_LARGEST = 1_000_000_000
"""Bytes that all of them may have."""
_ON_MAP = 40
"""Longer side of a picture on the map, in pixels."""


def write_thumbnails(path: Path, thumbnails: Thumbnails) -> None:
    """Keep some images, with their rows."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, images=thumbnails.images, row=thumbnails.row)
    write_atomically(path, buffer.getvalue())


def for_map(images: Bytes, rows: Rows) -> Thumbnails:
    """Copies that are small enough for hundreds of them."""
    height, width = images.shape[1:3]
    scale = min(1.0, _ON_MAP / max(height, width))
    size = (max(1, round(height * scale)), max(1, round(width * scale)))
    return Thumbnails(resized(images[rows], size, "stretch"), rows)


def read_thumbnails(path: Path, n_images: int) -> Thumbnails:
    """What was kept; `ValueError` or `KeyError` if that makes no sense for a run of so many images."""
    arrays = read_arrays(path, _LARGEST)
    images, row = arrays["images"], arrays["row"]
    shaped = images.dtype == np.uint8 and images.ndim == 4 and 0 not in images.shape[1:]
    check(shaped, f"images must be uint8 (M, H, W, C), got {images.dtype} {images.shape}")
    fitting = row.shape == images.shape[:1] and row.dtype.kind in "iu"
    check(fitting, "row must give one whole number for each image")
    check(bool(((row >= 0) & (row < n_images)).all()), "a row that assignments.csv does not have")
    return Thumbnails(images, row.astype(np.int64))
