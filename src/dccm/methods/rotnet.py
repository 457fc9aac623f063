"""Unsupervised Representation Learning by Predicting Image Rotations (Gidaris et al., ICLR 2018).

Turn every image by 0, 90, 180 and 270 degrees and guess the turn: a network that can tell it knows what is in the image
and which way up such things are. All four copies of an image are in the same gradient step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Momentum, NotNegative, Positive, Section, Several
from dccm.data.loader import Batch, equal_parts
from dccm.data.perturb import suggested_format
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.training.update import Update

TURNS = 4


@dataclass(frozen=True, kw_only=True)
class RotNetConfig(Section):
    """Settings of RotNet; the defaults are those of the paper's experiments on CIFAR-10 (Section 3.1)."""

    mini_batch: Several = 128
    """Images in one gradient step; each of them comes in four turns."""
    learning_rate: Positive = 0.1
    """Step size of gradient descent."""
    momentum: Momentum = 0.9
    """Share of the last step that goes on."""
    weight_decay: NotNegative = 5e-4
    """Pull of all weights towards 0."""
    encoder: NetworkConfig = NetworkConfig()


class RotNetMethod(GradientMethod[RotNetConfig]):
    """An encoder whose last layer tells the four turns apart."""

    year = 2018
    citation = "Gidaris et al., Unsupervised Representation Learning by Predicting Image Rotations, ICLR 2018"
    learns = "features, by telling how an image was turned"
    cost = "4 encoder steps per image and pass"
    no_vectors = "turns pictures, and a vector cannot be turned"
    config_type = RotNetConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: RotNetConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder = build_encoder(config.encoder, shape, TURNS)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        sgd = torch.optim.SGD(
            self.parameters(),
            lr=self.config.learning_rate,
            momentum=self.config.momentum,
            weight_decay=self.config.weight_decay,
        )
        return {"all": sgd}

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Learn the turns of mini-batches."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            views, turns = turned(images)
            yield Update(F.cross_entropy(self.encoder(views).logits, turns), self.optimizers["all"], len(images))


def turned(images: Tensor) -> tuple[Tensor, Tensor]:
    """Each image in its four turns (g(X | y) of the paper), and the turns.

    Args:
        images: (B, C, H, W).

    Returns:
        (4 B, C, S, S), all images in the first turn, then all in the second; and (4 B,) quarter turns, 0 to 3.
    """
    square = middle_square(images)
    views = torch.cat([square.rot90(turn, dims=(2, 3)) for turn in range(TURNS)])
    turns = torch.arange(TURNS, device=images.device).repeat_interleave(len(images))
    # `rot90` swaps the strides, and a convolution on such a layout is slow.
    return views.contiguous(memory_format=suggested_format(images)), turns


def middle_square(images: Tensor) -> Tensor:
    """The middle of images that are not square; otherwise their shape would tell the turn."""
    height, width = images.shape[2:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return images[:, :, top : top + side, left : left + side]
