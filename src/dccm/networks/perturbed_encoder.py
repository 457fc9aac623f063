"""A pretrained encoder that sees images perturbed: what stands for the perturbed copy where methods learn from vectors.

Vectors cannot be turned or shifted, but the images can be before the encoder looks at them.
"""

from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from dccm.arrays import Bytes, Floats
from dccm.config import flat
from dccm.data.perturb import Perturbation, PerturbationConfig, apply, draw
from dccm.networks.feature_encoder import FeatureEncoder


class PerturbedEncoder:
    """The vector of one perturbed copy of each image.

    What is done to an image depends on its pixels and the number of the view alone, so that a stopped computation
    goes on with the same copies.

    Args:
        encoder: What makes vectors of the copies.
        ranges: From which each image draws its perturbation.
        number: Of the view; each has draws of its own.
    """

    def __init__(self, encoder: FeatureEncoder, ranges: PerturbationConfig, number: int) -> None:
        self.encoder, self.ranges, self.number = encoder, ranges, number
        self.name = f"{encoder.name}, view {number + 1}"
        self.identity = f"{encoder.identity} view {number} {flat(ranges)}"
        self.feature_size, self.at_once = encoder.feature_size, encoder.at_once
        self.preprocessing = encoder.preprocessing

    def __call__(self, images: Bytes) -> Floats:
        """Vectors of the perturbed copies of images (B, H, W, C): (B, D)."""
        return self.encoder(self.perturbed(images))

    def perturbed(self, images: Bytes) -> Bytes:
        """A perturbed copy of each image, (B, H, W, C)."""
        draws = [self._drawn(image) for image in images]
        matrices, levels = (torch.cat([getattr(one, name) for one in draws]) for name in ("matrices", "levels"))
        drawn = Perturbation(matrices, levels, self.ranges.brightness)
        pixels = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).float().div_(255)
        copies: Tensor = apply(pixels, drawn).mul_(255).round_().byte()
        return np.ascontiguousarray(copies.permute(0, 2, 3, 1).numpy())

    def _drawn(self, image: Bytes) -> Perturbation:
        """What is done to one image."""
        height, width, channels = image.shape
        generator = torch.Generator().manual_seed(crc32(image.tobytes(), self.number))
        return draw((1, channels, height, width), self.ranges, generator)
