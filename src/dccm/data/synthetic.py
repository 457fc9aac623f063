"""Small generated image sets for tests and examples."""

import numpy as np

from dccm.arrays import Bytes
from dccm.data.images import ImageSet


def bars(count: int = 120, side: int = 16, channels: int = 1, classes: int = 4, seed: int = 0) -> ImageSet:
    """Noisy bars, evenly spread over so many directions; each direction is a class.

    Args:
        count: Images; classes take turns, so they are equally large.
        side: Pixels of each side.
        channels: 1 for grey, 3 for colour.
        classes: Number of directions.
        seed: Decides position and noise.
    """
    random = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    images = np.stack([_bar(np.pi * label / classes, side, random) for label in labels])
    return ImageSet(images[..., np.newaxis].repeat(channels, axis=3), [f"bar-{n:05d}" for n in range(count)], labels)


def _bar(angle: float, side: int, random: np.random.Generator) -> Bytes:
    rows, columns = np.mgrid[:side, :side] - side / 2 + 0.5
    distance = np.abs(columns * np.sin(angle) + rows * np.cos(angle) - random.uniform(-side / 8, side / 8))
    light: np.ndarray = np.clip(side / 8 + 0.5 - distance, 0, 1) * 200 + random.uniform(0, 40, (side, side))
    return light.astype(np.uint8)
