"""Auto-Encoding Variational Bayes (Kingma and Welling, ICLR 2014).

Each image has a normal distribution of codes. From a draw of it the decoder must find the image back, while all of
these distributions stay near one standard normal one: a lower bound of the images' likelihood is raised.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Positive, Section, Several
from dccm.data.loader import Batch, equal_parts
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.networks.decoder import Decoder
from dccm.training.update import Update


@dataclass(frozen=True, kw_only=True)
class VAEConfig(Section):
    """Settings of the variational auto-encoder."""

    code_size: Count = 10
    """Length of the code; the paper tries 2 to 200, of which 3 to 20 on digits (Figure 2)."""
    mini_batch: Several = 100
    """Images in one gradient step (Section 2.3: M = 100)."""
    learning_rate: Positive = 1e-3
    """Step size of Adam; the paper's Adagrad chose from 0.01, 0.02, 0.1."""
    encoder: NetworkConfig = NetworkConfig()


class VAEMethod(GradientMethod[VAEConfig]):
    """Encoder of a distribution, decoder of a draw from it."""

    year = 2014
    citation = "Kingma and Welling, Auto-Encoding Variational Bayes, ICLR 2014"
    learns = "features; clusters by k-means"
    cost = "1 encoder and 1 decoder step per image and pass"
    no_vectors = "learns to paint pictures again"
    config_type = VAEConfig
    networks = ("encoder", "decoder")

    def __init__(self, shape: ImageShape, n_clusters: int, config: VAEConfig) -> None:
        super().__init__(shape, n_clusters, config)
        # The last linear layer gives mean and log-variance, side by side.
        self.encoder = build_encoder(config.encoder, shape, 2 * self.config.code_size)
        self.decoder = Decoder(shape, self.config.code_size)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        return {"all": torch.optim.Adam(self.parameters(), lr=self.config.learning_rate)}

    def updates(self, batch: Batch) -> Iterator[Update]:
        """For each mini-batch, the negative lower bound (Eq. (10))."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            mean, log_variance = self.posterior(images)
            code = draw_code(mean, log_variance, batch.generator)
            reconstruction = negative_log_likelihood(self.decoder(code), images)
            divergence = divergence_from_prior(mean, log_variance)
            terms = {"reconstruction": reconstruction, "divergence": divergence}
            yield Update(reconstruction + divergence, self.optimizers["all"], len(images), terms)

    def posterior(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of each image's codes, (B, code_size) both (Eq. (9))."""
        mean, log_variance = self.encoder(images).logits.chunk(2, dim=1)
        return mean, log_variance

    def embed(self, images: Tensor) -> Tensor:
        """The mean of the image's codes."""
        return self.posterior(images)[0]


def draw_code(mean: Tensor, log_variance: Tensor, generator: torch.Generator) -> Tensor:
    """A draw from each normal distribution, through which the gradient flows (Section 2.4)."""
    noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
    return mean + noise * torch.exp(log_variance / 2)


def divergence_from_prior(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Kullback-Leibler divergence of each code's distribution from the standard normal one (Appendix B).

    Args:
        mean: (B, D).
        log_variance: (B, D).

    Returns:
        Summed over the code, mean over the images; 0 exactly at mean 0 and variance 1.
    """
    each = (mean.square() + log_variance.exp() - 1 - log_variance) / 2
    return each.sum(dim=1).mean()


def negative_log_likelihood(logits: Tensor, images: Tensor) -> Tensor:
    """Cross-entropy of pixels in [0, 1] (Appendix C.1, Bernoulli), summed over the image, mean over the images."""
    return F.binary_cross_entropy_with_logits(logits, images, reduction="sum") / len(images)
