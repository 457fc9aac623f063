"""SCAN: Learning to Classify Images without Labels (Van Gansbeke et al., ECCV 2020), on frozen features.

Neighbours in the space of good features mostly show the same thing. So a head first learns to say the same of an image
and its neighbours, while all clusters are used. Then it learns from its own surest answers, which mends the harm that
wrong neighbours did.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Handful, Momentum, NotNegative, Positive, Section, Several, Share
from dccm.data.loader import Batch, Loader
from dccm.methods.base import GradientMethod
from dccm.methods.heads import (
    Neighbourhood,
    Start,
    begin_heads,
    mini_batches,
    neighbour_count,
    points_of,
    require_vectors,
    watched,
)
from dccm.networks.components import Components, LinearHeads
from dccm.training.update import Moment, Update

_NEW_SHARE = 0.05
"""Weight of a mini-batch in the running mean of the losses by which heads are compared."""


@dataclass(frozen=True, kw_only=True)
class SCANConfig(Section):
    """Settings of SCAN; the paper's for CIFAR-10 where it has them."""

    neighbours: Count = 20
    """Nearest others of an image with which it shall agree; at most half of a cluster's mean size."""
    entropy_weight: NotNegative = 5.0
    """Weight of the entropy of the mean prediction (λ)."""
    self_labelling: Share = 0.5
    """Share of the run, at its end, in which the head learns from its own labels."""
    confidence: Share = 0.99
    """Probability from which an image's own label is learnt from."""
    corruption: Momentum = 0.2
    """Share of an image's components set to zero while it learns its own label; ours, for the paper's strong
    perturbation of pictures."""
    heads: Handful = 10
    """Heads that learn from neighbours side by side; the one with the smallest loss goes on."""
    start: Start = "random"
    """Heads begin at random, as in the paper, or each where another start of k-means ends."""
    mini_batch: Several = 128
    """Images in one gradient step."""
    fewest_steps: Count = 20
    """Gradient steps per large batch at least; sets of few mini-batches are gone through several times. Ours."""
    learning_rate: Positive = 1e-3
    """Step size of Adam; ten times the paper's, as one linear layer learns and not a whole network."""


class Consistency(NamedTuple):
    """The two terms of the first stage, one of each per head, (H,)."""

    agreement: Tensor
    mean_entropy: Tensor
    """Of the mean prediction; plain `entropy` is that of the cluster sizes in the history."""


def neighbour_consistency(prediction: Tensor, neighbour: Tensor) -> Consistency:
    """How far predictions differ from those of neighbours, and how evenly clusters are used (Eq. (2)).

    Args:
        prediction: Of images, (H, B, K).
        neighbour: Of one neighbour of each, (H, B, K).
    """
    # A product that rounds to zero would have an infinite logarithm.
    same = (prediction * neighbour).sum(dim=2).clamp_min(torch.finfo(prediction.dtype).tiny)
    entropy: Tensor = torch.special.entr(prediction.mean(dim=1)).sum(dim=1)
    return Consistency(-same.log().mean(dim=1), entropy)


def self_label_loss(logits: Tensor, prediction: Tensor, confidence: float) -> Tensor:
    """Cross-entropy with the own labels of confident images; all clusters that have some weigh alike.

    Args:
        logits: Of corrupted images, (B, K).
        prediction: Of the same images, clean, (B, K); no gradient flows through it.
        confidence: Probability from which an image is learnt from.
    """
    probability, label = prediction.detach().max(dim=1)
    sure = (probability >= confidence).to(logits.dtype)
    sizes = torch.zeros(logits.shape[1], device=logits.device).index_add_(0, label, sure)
    weight = sure / sizes[label].clamp_min(1)
    return (F.cross_entropy(logits, label, reduction="none") * weight).sum() / weight.sum().clamp_min(1e-12)


class SCANMethod(GradientMethod[SCANConfig]):
    """Heads that agree on neighbours; the best of them then learns its own labels."""

    year = 2020
    citation = "Van Gansbeke et al., SCAN: Learning to Classify Images without Labels, ECCV 2020"
    learns = "clusters of a pretrained encoder's vectors, by agreement of neighbours"
    cost = "neighbours of all images once; 1 step of linear layers per image and pass"
    takes_vectors = True
    needs_vectors = True
    config_type = SCANConfig
    networks = ()
    one_process = "learns by steps of microseconds, less than a message takes"

    def __init__(self, shape: ImageShape, n_clusters: int, config: SCANConfig) -> None:
        super().__init__(shape, n_clusters, config)
        require_vectors("scan", shape)
        self.components = Components(shape.channels)
        self.heads = LinearHeads(config.heads, self.components.size, n_clusters)
        self.neighbourhood = Neighbourhood(self.components.size)
        self.losses: Tensor
        self.register_buffer("losses", torch.zeros(config.heads))  # Running mean of each head's.

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for each stage."""
        rate = self.config.learning_rate
        return {
            "neighbours": torch.optim.Adam(self.heads.parameters(), lr=rate, fused=True),
            "self_labelling": torch.optim.Adam(self.heads.parameters(), lr=rate, fused=True),
        }

    @property
    def fewest_images(self) -> int:
        """An image and its neighbour."""
        return 2

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """At the very start, find the neighbours of all images."""
        if moment.epoch == 0:
            points = points_of(self.components, loader)
            count = neighbour_count(self.config.neighbours, len(loader), self.n_clusters)
            self.neighbourhood.look(points, count, self.on_progress)
            if self.config.start == "kmeans":
                begin_heads(self.heads, points, loader.seed)

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Mini-batches of the stage that the run is in."""
        index = batch.index.to(self.losses.device)
        own_labels = batch.done >= 1 - self.config.self_labelling
        size, fewest = self.config.mini_batch, self.config.fewest_steps
        for part in mini_batches(index, size, fewest, batch.generator):
            yield (self._self_labelled if own_labels else self._consistent)(part, batch.generator)

    def _consistent(self, index: Tensor, generator: torch.Generator) -> Update:
        """All heads on images and one random neighbour of each."""
        images, neighbours = self.neighbourhood.pairs(index, generator)
        prediction, other = self.heads(torch.cat([images, neighbours])).softmax(dim=2).chunk(2, dim=1)
        terms = neighbour_consistency(prediction, other)
        losses = terms.agreement - self.config.entropy_weight * terms.mean_entropy
        self.losses.lerp_(losses.detach(), _NEW_SHARE)
        best = {name: value[self.best] for name, value in terms._asdict().items()}
        seen = watched(prediction[self.best])
        return Update(losses.sum(), self.optimizers["neighbours"], len(index), best, seen)

    def _self_labelled(self, index: Tensor, generator: torch.Generator) -> Update:
        """The best head on its own surest labels."""
        points = self.neighbourhood.points.rows[index]
        kept = torch.rand(points.shape, generator=generator, device=points.device) >= self.config.corruption
        clean, corrupted = self.heads(torch.cat([points, points * kept]))[self.best].chunk(2)
        prediction = clean.softmax(dim=1)
        loss = self_label_loss(corrupted, prediction, self.config.confidence)
        terms = {"self_labels": loss.detach()}
        return Update(loss, self.optimizers["self_labelling"], len(index), terms, watched(prediction))

    @property
    def best(self) -> Tensor:
        """Number of the head with the smallest loss; it answers."""
        return self.losses.argmin()

    def embed(self, images: Tensor) -> Tensor:
        """Principal components."""
        points: Tensor = self.components(images)
        return points

    def predict(self, images: Tensor) -> Tensor:
        """What the best head says."""
        probability: Tensor = self.heads(self.embed(images))[self.best].softmax(dim=1)
        return probability

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """Neighbours are no longer needed."""
        super().finish(loader)
        self.neighbourhood.forget()
        return self
