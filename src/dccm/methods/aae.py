"""Adversarial auto-encoder (Makhzani et al., 2015).

An auto-encoder whose codes, taken together, must look like draws from a prior: a discriminator learns to tell them
apart, and the encoder learns to deceive it.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.config import Count, Positive, Section, Several
from dccm.data.loader import Batch, equal_parts
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.networks.decoder import Decoder
from dccm.networks.discriminator import discriminator_loss, generator_loss
from dccm.training.update import Update

_HIDDEN = 1000
"""Units of each hidden layer of the discriminator (Appendix A)."""


@dataclass(frozen=True, kw_only=True)
class AAEConfig(Section):
    """Settings of the adversarial auto-encoder."""

    code_size: Count = 8
    """Length of the code; 8 is the paper's for MNIST's likelihood (Appendix A.1)."""
    prior_deviation: Positive = 5.0
    """Deviation of the normal prior; 5 is the paper's for MNIST's likelihood (Appendix A.1)."""
    mini_batch: Several = 100
    """Images in one gradient step; the paper does not say."""
    learning_rate: Positive = 1e-3
    """Step size of Adam for the reconstruction."""
    adversarial_learning_rate: Positive = 2e-4
    """Step size of Adam for discriminator and deceiving encoder: DCGAN's, as is its beta 1 of 0.5."""
    encoder: NetworkConfig = NetworkConfig()


class AAEMethod(GradientMethod[AAEConfig]):
    """Auto-encoder, and a discriminator of its codes."""

    year = 2015
    citation = "Makhzani et al., Adversarial Autoencoders, 2015"
    learns = "features; clusters by k-means"
    cost = "2 encoder and 1 decoder steps per image and pass"
    no_vectors = "learns to paint pictures again"
    config_type = AAEConfig
    networks = ("encoder", "decoder", "discriminator")

    def __init__(self, shape: ImageShape, n_clusters: int, config: AAEConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder = build_encoder(config.encoder, shape, self.config.code_size)
        self.decoder = Decoder(shape, self.config.code_size)
        self.discriminator = code_discriminator(self.config.code_size)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for each of the losses."""
        painters = [*self.encoder.parameters(), *self.decoder.parameters()]
        rate, betas = self.config.adversarial_learning_rate, (0.5, 0.999)
        return {
            "reconstruction": torch.optim.Adam(painters, lr=self.config.learning_rate),
            "discriminator": torch.optim.Adam(self.discriminator.parameters(), lr=rate, betas=betas),
            "generator": torch.optim.Adam(self.encoder.parameters(), lr=rate, betas=betas),
        }

    def updates(self, batch: Batch) -> Iterator[Update]:
        """For each mini-batch, reconstruction, then regularisation: the discriminator, then the encoder."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            loss = F.binary_cross_entropy_with_logits(self.decoder(self.embed(images)), images)
            yield Update(loss, self.optimizers["reconstruction"], len(images), {"reconstruction": loss})
            code = self.embed(images)
            loss = discriminator_loss(self.judge(self.draw_prior(code, batch.generator)), self.judge(code.detach()))
            # The same images: they count once.
            yield Update(loss, self.optimizers["discriminator"], 0, {"discriminator": loss})
            loss = generator_loss(self.judge(code))
            yield Update(loss, self.optimizers["generator"], 0, {"generator": loss})

    def draw_prior(self, code: Tensor, generator: torch.Generator) -> Tensor:
        """As many codes from the prior."""
        noise = torch.randn(code.shape, generator=generator, device=code.device, dtype=code.dtype)
        return self.config.prior_deviation * noise

    def judge(self, code: Tensor) -> Tensor:
        """Log-odds that a code comes from the prior, (B,)."""
        score: Tensor = self.discriminator(code / self.config.prior_deviation)
        return score.squeeze(1)

    def embed(self, images: Tensor) -> Tensor:
        """The code."""
        code: Tensor = self.encoder(images).logits
        return code


def code_discriminator(code_size: int) -> nn.Sequential:
    """Two hidden layers with ReLU, and a score."""
    return nn.Sequential(
        OrderedDict(
            first=nn.Linear(code_size, _HIDDEN),
            first_relu=nn.ReLU(),
            second=nn.Linear(_HIDDEN, _HIDDEN),
            second_relu=nn.ReLU(),
            score=nn.Linear(_HIDDEN, 1),
        )
    )
