"""Discriminators: are these images real, do these pairs of image and code come from the data? And their losses."""

from collections import OrderedDict
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.networks.decoder import doublings
from dccm.networks.paper import nearest_architecture

SLOPE = 0.2
"""Of LeakyReLU below zero (DCGAN, Section 3)."""
_HIDDEN = 256
"""Units in which image and code meet."""


class DiscriminatorOutput(NamedTuple):
    """What the discriminator says of a batch."""

    conv: Tensor
    """Last convolution, (B, 256, H, W)."""
    score: Tensor
    """Log-odds that an image is real, (B,)."""


class Discriminator(nn.Module):
    """Images -> log-odds of being real, by the discriminator of DCGAN (Radford et al., 2016).

    Convolutions of stride 2 with LeakyReLU and without pooling: the decoder turned round. Unlike DCGAN's it has no
    batch norm: a batch of painted images, normed by itself, would lose just what sets it apart from a real one. On
    small images, with few places in a map, hardly anything else is left to judge by.
    """

    def __init__(self, shape: ImageShape) -> None:
        super().__init__()
        self.halvings, size = _halvings(shape)
        self.score = nn.Linear(size, 1)

    def forward(self, images: Tensor) -> DiscriminatorOutput:
        """Judge images, (B, C, H, W)."""
        conv = self.halvings(images)
        return DiscriminatorOutput(conv, self.score(conv.flatten(1)).squeeze(1))


class PairDiscriminator(nn.Module):
    """Pairs of an image and a code -> log-odds that the image was given and the code inferred (BiGAN)."""

    def __init__(self, shape: ImageShape, code_size: int) -> None:
        super().__init__()
        self.halvings, size = _halvings(shape)
        self.of_image = nn.Linear(size, _HIDDEN)
        self.of_code = nn.Sequential(
            OrderedDict(
                first=nn.Linear(code_size, _HIDDEN), relu=nn.LeakyReLU(SLOPE), second=nn.Linear(_HIDDEN, _HIDDEN)
            )
        )
        self.middle = nn.Linear(_HIDDEN, _HIDDEN)
        self.score = nn.Linear(_HIDDEN, 1)

    def forward(self, images: Tensor, code: Tensor) -> Tensor:
        """Judge pairs of (B, C, H, W) and (B, D): a score for each, (B,)."""
        # A linear layer on a concatenation is the sum of one on each part.
        both = self.of_image(self.halvings(images).flatten(1)) + self.of_code(code)
        hidden = F.leaky_relu(self.middle(F.leaky_relu(both, SLOPE)), SLOPE)
        scores: Tensor = self.score(hidden)
        return scores.squeeze(1)


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """Mean cross-entropy of calling the first scores real and the second ones not (Goodfellow et al., 2014).

    Args:
        real: Log-odds of what is to be called real, (B,).
        fake: Log-odds of what is not, (B,).
    """
    return F.softplus(-real).mean() + F.softplus(fake).mean()


def generator_loss(fake: Tensor) -> Tensor:
    """Cross-entropy of having the fakes called real: the form whose gradient does not vanish."""
    return F.softplus(-fake).mean()


def uniform_noise(count: int, size: int, generator: torch.Generator) -> Tensor:
    """Codes from the uniform distribution on [-1, 1], (B, D): the prior of DCGAN and BiGAN."""
    return torch.rand(count, size, generator=generator, device=generator.device) * 2 - 1


def _halvings(shape: ImageShape) -> tuple[nn.Sequential, int]:
    """Convolutions that each halve the side, with the decoder's widths, and how many numbers come out of them."""
    nearest_architecture(shape)  # Refuses images that are too small.
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    channels, (height, width) = shape.channels, shape[1:]
    for number, wanted in enumerate(reversed(doublings(shape))):
        layers[f"conv{number}"] = nn.Conv2d(channels, wanted, 4, stride=2, padding=1)
        layers[f"relu{number}"] = nn.LeakyReLU(SLOPE, inplace=True)
        channels, height, width = wanted, height // 2, width // 2
    return nn.Sequential(layers), channels * height * width
