"""Deep convolutional generative adversarial network (Radford, Metz and Chintala, ICLR 2016).

A generator paints images from noise, a discriminator learns to tell them from real ones, and each learns from the
other. What the discriminator had to see in order to do that serves as features.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Momentum, Positive, Section, Several
from dccm.data.loader import Batch, equal_parts
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks.decoder import Decoder
from dccm.networks.discriminator import Discriminator, discriminator_loss, generator_loss, uniform_noise
from dccm.training.update import Update


@dataclass(frozen=True, kw_only=True)
class GANConfig(Section):
    """Settings of DCGAN; the defaults are its paper's."""

    noise_size: Count = 100
    """Length of the noise that an image is painted from (Figure 1)."""
    mini_batch: Several = 128
    """Images in one gradient step (Section 4)."""
    learning_rate: Positive = 2e-4
    """Step size of Adam, for generator and discriminator alike (Section 4)."""
    momentum: Momentum = 0.5
    """Adam's beta 1 (Section 4): with the usual 0.9 the two swing."""


class GANMethod(GradientMethod[GANConfig]):
    """Generator against discriminator; the discriminator's last convolution is kept."""

    year = 2016
    citation = "Radford et al., Unsupervised Representation Learning with Deep Convolutional GANs, ICLR 2016"
    learns = "features; clusters by k-means"
    cost = "3 discriminator and 1 generator steps per image and pass"
    no_vectors = "learns to tell pictures from painted ones"
    config_type = GANConfig
    networks = ("generator", "discriminator")

    def __init__(self, shape: ImageShape, n_clusters: int, config: GANConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.generator = Decoder(shape, self.config.noise_size)
        self.discriminator = Discriminator(shape)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for each side."""
        rate, betas = self.config.learning_rate, (self.config.momentum, 0.999)
        return {
            "discriminator": torch.optim.Adam(self.discriminator.parameters(), lr=rate, betas=betas),
            "generator": torch.optim.Adam(self.generator.parameters(), lr=rate, betas=betas),
        }

    def updates(self, batch: Batch) -> Iterator[Update]:
        """For each mini-batch, the discriminator's loss, then the generator's."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            painted = self.paint(uniform_noise(len(images), self.config.noise_size, batch.generator))
            loss = discriminator_loss(self.discriminator(images).score, self.discriminator(painted.detach()).score)
            yield Update(loss, self.optimizers["discriminator"], len(images), {"discriminator": loss})
            loss = generator_loss(self.discriminator(painted).score)
            # The same images: they count once.
            yield Update(loss, self.optimizers["generator"], 0, {"generator": loss})

    def paint(self, noise: Tensor) -> Tensor:
        """Images in [0, 1] from noise, (B, noise_size)."""
        logits: Tensor = self.generator(noise)
        return torch.sigmoid(logits)

    def embed(self, images: Tensor) -> Tensor:
        """The discriminator's last convolution, the largest value of each channel (Section 5.1), (B, 256)."""
        return F.adaptive_max_pool2d(self.discriminator(images).conv, 1).flatten(1)
