"""Learning Deep Representations by Mutual Information Estimation and Maximization (Hjelm et al., ICLR 2019): DIM.

A feature should tell something about every place of its image. A critic scores pairs of a feature and a place of a
feature map: high if both come from one image, low if not. Encoder and critic raise the Jensen-Shannon estimate of the
mutual information together, averaged over all places: the paper's local objective.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Positive, Section, Several
from dccm.correlations.triplets import Pairs, own_pairs
from dccm.data.loader import Batch, equal_parts
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.methods.shared_critic import shared_information_loss
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.networks.critic import Critic, map_positions
from dccm.training.update import Update


@dataclass(frozen=True, kw_only=True)
class DIMConfig(Section):
    """Settings of DIM."""

    negatives: Count = 1
    """Other images whose maps each feature is scored with; ours, as DCCM does."""
    critic_positions: Count | Literal["all"] = "all"
    """Places of the feature map at which the critic is asked: all of them, or this many random ones."""
    mini_batch: Several = 64
    """Images in one gradient step; the paper's."""
    learning_rate: Positive = 1e-4
    """Step size of Adam; the paper's."""
    encoder: NetworkConfig = NetworkConfig()


class DIMMethod(GradientMethod[DIMConfig]):
    """Encoder and critic, which raise the same estimate."""

    year = 2019
    citation = (
        "Hjelm et al., Learning Deep Representations by Mutual Information Estimation and Maximization, ICLR 2019"
    )
    learns = "features, by their mutual information with places of the image"
    cost = "1 encoder step and 2 critic scores per image and pass"
    no_vectors = "compares places of a picture, which a vector does not have"
    config_type = DIMConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: DIMConfig) -> None:
        super().__init__(shape, n_clusters, config)
        # Its last layer stays unused: the features are what is learnt.
        self.encoder = build_encoder(config.encoder, shape, n_clusters)
        self.critic = Critic(self.encoder.map_channels, self.encoder.feature_size)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        return {"all": torch.optim.Adam(self.parameters(), lr=self.config.learning_rate)}

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Raise the mutual information in mini-batches."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            yield Update(self._loss(images, batch.generator), self.optimizers["all"], len(images))

    def _loss(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Negative local mutual information: own maps are joint, other images' maps marginal."""
        output = self.encoder(images)
        count = None if self.config.critic_positions == "all" else self.config.critic_positions
        positions = map_positions(output.feature_map, count, generator)
        joint = own_pairs(len(images), images.device)
        marginal = other_pairs(len(images), self.config.negatives, images.device)
        return shared_information_loss(self.critic, positions, output.feature, joint, marginal, self.workers)


def other_pairs(size: int, count: int, device: torch.device) -> Pairs:
    """Each image's feature with the maps of the `count` images after it, in a circle; fewer if there are fewer.

    Mini-batches come in random order, so these are random other images, and every map is used equally often.
    """
    step = torch.arange(1, min(count, size - 1) + 1, device=device)
    own = torch.arange(size, device=device)
    partner = (own.unsqueeze(1) + step) % size
    anchor = own.unsqueeze(1).expand_as(partner)
    return Pairs(anchor.flatten(), partner.flatten(), torch.ones(partner.numel(), device=device))
