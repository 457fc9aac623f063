"""Kinds of arrays that everything hands around, and the shape of an image; nothing of torch."""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
"""Images, (N, H, W, C), in memory or mapped from a file."""
Floats = npt.NDArray[np.float32]
"""Predictions, features."""
Halves = npt.NDArray[np.float16]
"""Vectors of images by a pretrained encoder, (N, D); as methods see them, (N, 1, 1, D)."""
Inputs = Bytes | Halves
"""What methods work on: images, or a vector in the place of each."""
Fit = Literal["crop", "pad", "stretch"]
"""How an image becomes square: crop the longer side to its middle, pad the shorter one with black, or stretch it."""

LARGEST_SIDE = 10_000
SMALLEST_SIDE = 8
"""Pixels that each side of an image must have at least."""
USUAL_SIDES = (32, 64, 96)
"""Image sides that the paper's networks were made for."""


class ImageShape(NamedTuple):
    """Shape of one image."""

    channels: int
    height: int
    width: int

    @property
    def is_vector(self) -> bool:
        """Whether a vector stands in the place of the image: no image is so small."""
        return self.height == self.width == 1
