"""Vectors in the place of images, for the tests of several files."""

import numpy as np

from dccm.arrays import Halves
from dccm.data.images import ImageSet


def blobs(count: int, classes: int = 3, size: int = 16, spread: float = 0.1, seed: int = 0) -> tuple[Halves, list[int]]:
    """Vectors of length one around one direction per class, as methods see them, (N, 1, 1, D), and their classes."""
    draw = np.random.default_rng(seed)
    directions = np.linalg.qr(draw.standard_normal((max(size, classes), size)))[0][:classes]
    labels = np.arange(count) % classes
    rows = directions[labels] + spread * draw.standard_normal((count, size))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float16)[:, np.newaxis, np.newaxis], labels.tolist()


def as_image_set(count: int) -> ImageSet:
    """Images of which nobody looks at the pixels."""
    return ImageSet(np.zeros((count, 8, 8, 1), np.uint8), [str(number) for number in range(count)])
