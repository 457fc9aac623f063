"""Bidirectional generative adversarial network (Donahue, Krähenbühl and Darrell, ICLR 2017).

A generator paints images from codes, an encoder infers codes from images. A discriminator sees pairs and learns
which of the two made them; to deceive it, each of the two must invert the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Momentum, Positive, Section, Several
from dccm.data.loader import Batch, equal_parts
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.networks.decoder import Decoder
from dccm.networks.discriminator import PairDiscriminator, discriminator_loss, uniform_noise
from dccm.training.update import Update


@dataclass(frozen=True, kw_only=True)
class BiGANConfig(Section):
    """Settings of BiGAN."""

    code_size: Count = 50
    """Length of the code, uniform on [-1, 1] (the paper's for MNIST; 200 for ImageNet)."""
    mini_batch: Several = 128
    """Images in one gradient step (the paper's, after DCGAN)."""
    learning_rate: Positive = 2e-4
    """Step size of Adam (the paper's, after DCGAN)."""
    momentum: Momentum = 0.5
    """Adam's beta 1 (the paper's, after DCGAN)."""
    encoder: NetworkConfig = NetworkConfig()


class BiGANMethod(GradientMethod[BiGANConfig]):
    """Encoder and generator against a discriminator of pairs."""

    year = 2017
    citation = "Donahue et al., Adversarial Feature Learning, ICLR 2017"
    learns = "features; clusters by k-means"
    cost = "1 encoder, 1 generator and 4 discriminator steps per image and pass"
    no_vectors = "learns to paint pictures, and to find the code of each"
    config_type = BiGANConfig
    networks = ("encoder", "generator", "discriminator")

    def __init__(self, shape: ImageShape, n_clusters: int, config: BiGANConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder = build_encoder(config.encoder, shape, self.config.code_size)
        self.generator = Decoder(shape, self.config.code_size)
        self.discriminator = PairDiscriminator(shape, self.config.code_size)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for each side."""
        rate, betas = self.config.learning_rate, (self.config.momentum, 0.999)
        both = [*self.encoder.parameters(), *self.generator.parameters()]
        return {
            "discriminator": torch.optim.Adam(self.discriminator.parameters(), lr=rate, betas=betas),
            "generator": torch.optim.Adam(both, lr=rate, betas=betas),
        }

    def updates(self, batch: Batch) -> Iterator[Update]:
        """For each mini-batch, the discriminator's loss, then that of generator and encoder."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            noise = uniform_noise(len(images), self.config.code_size, batch.generator)
            code, painted = self.embed(images), self.paint(noise)
            inferred = self.discriminator(images, code.detach())
            generated = self.discriminator(painted.detach(), noise)
            loss = discriminator_loss(inferred, generated)
            yield Update(loss, self.optimizers["discriminator"], len(images), {"discriminator": loss})
            inferred, generated = self.discriminator(images, code), self.discriminator(painted, noise)
            # The paper's inverse objective: its gradient does not vanish when the discriminator wins.
            loss = discriminator_loss(generated, inferred)
            # The same images: they count once.
            yield Update(loss, self.optimizers["generator"], 0, {"generator": loss})

    def paint(self, code: Tensor) -> Tensor:
        """Images in [0, 1] from codes, (B, code_size)."""
        logits: Tensor = self.generator(code)
        return torch.sigmoid(logits)

    def embed(self, images: Tensor) -> Tensor:
        """The inferred code."""
        code: Tensor = self.encoder(images).logits
        return code
