"""Deep Adaptive Image Clustering (Chang et al., ICCV 2017).

Clustering becomes a question about pairs: do two images belong together? Label features that are not negative and of
unit length make their dot product the answer. Pairs above an upper threshold learn to be alike, pairs below a lower
one to be different, and those in between are left out; both thresholds move towards each other, from sure pairs to all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Bounds, Count, Handful, Momentum, Positive, Section, Several
from dccm.correlations.pseudo_graph import SaturatedPairs, pair_cross_entropy, similarity
from dccm.data.loader import Batch, Loader, equal_parts
from dccm.data.perturb import PerturbationConfig, perturb
from dccm.methods.base import GradientMethod, predictions_of
from dccm.methods.heads import begin_from_kmeans
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.networks.head import VectorHead
from dccm.training.collapse import Watched, cluster_information
from dccm.training.update import Moment, Update

LAST = 0.45
"""λ at which u(λ) = 0.95 - λ and l(λ) = 0.455 + 0.1 λ meet: both are 0.5."""


@dataclass(frozen=True, kw_only=True)
class DACConfig(Section):
    """Settings of DAC; the thresholds are the paper's, other values ours where it is silent."""

    meeting: Annotated[float, Bounds(0, 1, without="low")] = 0.55
    """Share of the run over which λ grows until the thresholds meet; from then on all pairs count.
    The paper's λ grows as evenly, by one gradient step per epoch, whose length it does not give."""
    saturated_pairs: SaturatedPairs = "rest"
    """Pairs whose similarity is within a millionth of 0 or 1 give no gradient any more, or learn on."""
    starts: Handful = 1
    """Networks that begin with different weights; from 60 % of the run on the worst are dropped, one is left."""
    mini_batch: Several = 32
    """Images in one gradient step."""
    uses: Count = 1
    """Times that the pairs of a large batch are learnt from before new ones are chosen."""
    learning_rate: Positive = 1e-3
    """Step size of RMSprop."""
    rmsprop_alpha: Momentum = 0.99
    """Share of the old mean square in RMSprop's new one; 0.9 in the framework of the authors, 0.99 in PyTorch."""
    encoder: NetworkConfig = NetworkConfig(logit_norm="batch")
    perturbation: PerturbationConfig = PerturbationConfig()


class Pairs(NamedTuple):
    """What is known about the pairs of some images."""

    alike: Tensor
    """r: 1 where two images belong together, (B, B)."""
    chosen: Tensor
    """v: 1 where the pair is learnt from, (B, B)."""

    def among(self, index: Tensor) -> "Pairs":
        """The pairs of some of the images."""
        return Pairs(*(matrix[index][:, index] for matrix in self))


def thresholds(growth: float) -> tuple[float, float]:
    """Upper threshold u(λ) and lower threshold l(λ)."""
    return 0.95 - growth, 0.455 + 0.1 * growth


def choose_pairs(similarity: Tensor, upper: float, lower: float) -> Pairs:
    """Say of each pair whether it is alike, different, or left out; no gradient flows through it.

    Args:
        similarity: Dot products of the label features, (B, B).
        upper: u(λ), from which a pair is alike.
        lower: l(λ), below which it is different.
    """
    known = similarity.detach()
    alike = known >= upper
    chosen = alike | (known < lower)
    return Pairs(alike.to(known.dtype), chosen.to(known.dtype))


def pair_loss(prediction: Tensor, pairs: Pairs, saturated: SaturatedPairs = "rest") -> Tensor:
    """Binary cross-entropy of the similarity on chosen pairs; mean over all, so that it grows with their share.

    The paper's constraint layer, exp(x) scaled to unit length, is the direction of the softmax: its dot product is the
    cosine of the predictions.
    """
    return pair_cross_entropy(similarity(prediction), pairs.alike, saturated, pairs.chosen)


class DACMethod(GradientMethod[DACConfig]):
    """An encoder whose label features say which pairs belong together."""

    year = 2017
    citation = "Chang et al., Deep Adaptive Image Clustering, ICCV 2017"
    learns = "features and clusters together"
    cost = "1 encoder step per image and pass"
    takes_vectors = True
    config_type = DACConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: DACConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder = build_encoder(config.encoder, shape, n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        rmsprop = torch.optim.RMSprop(self.parameters(), lr=self.config.learning_rate, alpha=self.config.rmsprop_alpha)
        return {"all": rmsprop}

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """A head on vectors begins where k-means ends."""
        if isinstance(self.encoder, VectorHead) and moment.epoch == 0:
            begin_from_kmeans(self.encoder, loader, self.n_clusters)

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Choose pairs of the large batch by its clean images, then learn from perturbed mini-batches of it.

        The prediction is the label feature, scaled to sum to 1 instead of unit length. Vectors cannot be turned or
        shifted, and are learnt from as they are.
        """
        prediction = predictions_of(self.encoder, batch.images)
        growth = LAST * min(1.0, batch.done / self.config.meeting)  # λ
        pairs = choose_pairs(similarity(prediction), *thresholds(growth))
        watched = _watched(pairs, prediction)
        minis = equal_parts(len(batch.images), self.config.mini_batch)
        for _ in range(self.config.uses):
            perturbed = batch.images
            if not self.shape.is_vector:
                perturbed = perturb(perturbed, self.config.perturbation, batch.generator)
            order = torch.randperm(len(batch.images), generator=batch.generator, device=batch.images.device)
            for index in order.tensor_split(minis):
                prediction = self.encoder(perturbed[index]).prediction
                loss = pair_loss(prediction, pairs.among(index), self.config.saturated_pairs)
                yield Update(loss, self.optimizers["all"], len(index), watched=watched)

    def predict(self, images: Tensor) -> Tensor:
        """The label feature, scaled to sum to 1."""
        return self.encoder(images).prediction

    def embed_and_predict(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Both of one pass through the encoder."""
        output = self.encoder(images)
        return output.feature, output.prediction


def _watched(pairs: Pairs, prediction: Tensor) -> Watched:
    """What the pairs of a large batch say about the state of the clusters."""
    sizes = torch.bincount(prediction.argmax(dim=1), minlength=prediction.shape[1])
    links = pairs.alike.sum(dim=1) - 1  # An image is alike to itself.
    linked = links.mean() / max(1, len(prediction) - 1)
    return Watched(sizes, (links > 0).sum(), linked, cluster_information(prediction))
