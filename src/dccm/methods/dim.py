"""Learning Deep Representations by Mutual Information Estimation and Maximization (Hjelm et al., ICLR 2019): DIM.

A feature should tell something about every place of its image. A critic scores pairs of a feature and a place of a
feature map: high if both come from one image, low if not. Encoder and critic raise the Jensen-Shannon estimate of the
mutual information together, on average over all places: the paper's local objective.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from dccm.correlations.mutual_information import triplet_information_loss
from dccm.correlations.triplets import Pairs, own_pairs
from dccm.data.loader import Batch, equal_parts
from dccm.errors import require
from dccm.evaluation.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks.critic import Critic, map_positions
from dccm.networks.encoder import Encoder, ImageShape
from dccm.training import Update


@dataclass(frozen=True, kw_only=True)
class DIMConfig:
    """Settings of DIM."""

    negatives: int = 1
    """Other images whose maps each feature is scored with; ours, as DCCM does."""
    critic_positions: int | Literal["all"] = "all"
    """Places of the feature map on which the critic is asked: all, or so many random ones."""
    mini_batch: int = 64
    """Images in one gradient step; the paper's."""
    learning_rate: float = 1e-4
    """Step size of Adam; the paper's."""

    def __post_init__(self) -> None:
        require(self.negatives >= 1, f"negatives must be at least 1, got {self.negatives}. Give 1 or more.")
        require(self.mini_batch >= 2, f"mini_batch must be at least 2, got {self.mini_batch}. The paper's is 64.")
        require(self.learning_rate > 0, f"learning_rate must be above 0, got {self.learning_rate:g}. Try 0.0001.")
        positions = self.critic_positions
        require(
            positions == "all" or positions >= 1,
            f"critic_positions must be 'all' or at least 1, got {positions}. The paper asks all.",
        )


class DIMMethod(GradientMethod):
    """Encoder and critic, which raise the same estimate."""

    year = 2019
    citation = (
        "Hjelm et al., Learning Deep Representations by Mutual Information Estimation and Maximization, ICLR 2019"
    )
    learns = "features, by their mutual information with places of the image"
    cost = "1 encoder step and 2 critic scores an image and pass"
    sections: ClassVar[list[type[Any]]] = [DIMConfig]

    def __init__(self, shape: ImageShape, n_clusters: int, configs: list[Any]) -> None:
        super().__init__(shape, n_clusters, configs)
        self.config: DIMConfig
        [self.config] = configs
        self.encoder = Encoder(shape, n_clusters)  # Its last layer stays unused: the features are what is learnt.
        self.critic = Critic(self.encoder.map_channels, self.encoder.feature_size)
        self.readout = KMeansReadout(n_clusters)
        self.optimizers = {"all": torch.optim.Adam(self.parameters(), lr=self.config.learning_rate)}

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
        return triplet_information_loss(self.critic, positions, output.feature, joint, marginal)


def other_pairs(size: int, count: int, device: torch.device) -> Pairs:
    """Each image's feature with the maps of the `count` images behind it, in a circle; fewer if there are not so many.

    Mini-batches come in random order, so these are random other images, and every map is used equally often.
    """
    step = torch.arange(1, min(count, size - 1) + 1, device=device)
    own = torch.arange(size, device=device)
    partner = (own.unsqueeze(1) + step) % size
    anchor = own.unsqueeze(1).expand_as(partner)
    return Pairs(anchor.flatten(), partner.flatten(), torch.ones(partner.numel(), device=device))
