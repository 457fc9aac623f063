"""TURTLE: Let Go of Your Labels with Unsupervised Transfer (Gadetsky, Jiang and Brbic, ICML 2024).

A good labelling is one that simple classifiers can learn. So linear classifiers learn the labelling of the moment for a
few steps, then the labelling moves towards what they learnt; with the vectors of two encoders, towards what both could
learn. Its entropy keeps all clusters in use.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.config import Bounds, Count, NotNegative, Positive, Section, Several
from dccm.data.loader import Batch, Loader
from dccm.errors import require
from dccm.methods.base import GradientMethod
from dccm.methods.heads import Start, begin_heads, points_of, require_vectors, watched
from dccm.networks.components import Components, LinearHeads
from dccm.training.update import Moment, Update


@dataclass(frozen=True, kw_only=True)
class TURTLEConfig(Section):
    """Settings of TURTLE; the paper's where it has them."""

    inner_steps: Count = 10
    """Steps that the classifiers learn a labelling for, before it moves (M)."""
    inner_start: Literal["cold", "warm"] = "cold"
    """Classifiers begin anew each time, and so learn only what is learnt quickly; or learn on from where they were."""
    entropy_weight: NotNegative = 10.0
    """Weight of the entropy of the mean labelling (γ)."""
    first_space: Annotated[int, Bounds(0)] = 0
    """Numbers at the begin of a vector that are of one encoder, where the rest is another one's; 0: there is one."""
    start: Start = "random"
    """The labelling begins at random, as in the paper, or where k-means ends."""
    steps: Count = 100
    """Moves of the labelling per large batch, so that small sets have as many as large ones; ours."""
    mini_batch: Several = 1000
    """Images that are drawn for a move and the classifiers' steps before it; the paper's is 10,000."""
    learning_rate: Positive = 1e-2
    """Step size of Adam for the labelling; ten times the paper's, for a sixth of its moves."""
    inner_rate: Positive = 0.1
    """Step size of plain gradient descent for the classifiers; ours, the paper has Adam."""


def labelling_loss(logits: Tensor, labelling: Tensor) -> Tensor:
    """Cross-entropy of classifiers with a soft labelling, mean over images, sum over spaces.

    Args:
        logits: Of the classifier of each space, (S, B, K).
        labelling: Probability of each cluster, (B, K).
    """
    return -(labelling * F.log_softmax(logits, dim=2)).sum(dim=2).mean(dim=1).sum()


@torch.no_grad()
def learn(classifier: LinearHeads, points: Tensor, labelling: Tensor, steps: int, rate: float) -> None:
    """Let a linear classifier learn a soft labelling by gradient descent on `labelling_loss`.

    The gradient is written down: thousands of steps, each of microseconds, would be spent in building graphs.

    Args:
        classifier: A single head.
        points: (B, C).
        labelling: Probability of each cluster, (B, K).
        steps: How many.
        rate: Size of each.
    """
    for _ in range(steps):
        error = (classifier(points)[0].softmax(dim=1) - labelling) / len(points)
        classifier.weight[0] -= rate * (points.T @ error)
        classifier.bias[0] -= rate * error.sum(dim=0)


class Space(nn.Module):
    """The vectors of one encoder, with a share in the labelling and a classifier.

    Args:
        features: Numbers of a vector that are of this encoder.
        first: Place of the first of them.
        n_clusters: K.
    """

    def __init__(self, features: int, first: int, n_clusters: int) -> None:
        super().__init__()
        self.components = Components(features, first)
        self.labelling = LinearHeads(1, self.components.size, n_clusters)
        self.classifier = LinearHeads(1, self.components.size, n_clusters).requires_grad_(False)


class TURTLEMethod(GradientMethod[TURTLEConfig]):
    """A labelling, and a linear classifier in each space that learns it."""

    year = 2024
    citation = "Gadetsky et al., Let Go of Your Labels with Unsupervised Transfer, ICML 2024"
    learns = "clusters of a pretrained encoder's vectors: the labelling that linear classifiers learn best"
    cost = "11 steps of linear layers per move of the labelling"
    takes_vectors = True
    needs_vectors = True
    config_type = TURTLEConfig
    networks = ()
    one_process = "learns by steps of microseconds, less than a message takes"

    def __init__(self, shape: ImageShape, n_clusters: int, config: TURTLEConfig) -> None:
        super().__init__(shape, n_clusters, config)
        require_vectors("turtle", shape)
        cut, size = config.first_space, shape.channels
        require(
            cut < size,
            f"first_space must be below the {size} numbers of a vector, got {cut}. Set it to how many are of the "
            "first encoder, or to 0.",
        )
        parts = [(cut, 0), (size - cut, cut)] if cut else [(size, 0)]
        self.spaces = nn.ModuleList(Space(numbers, first, n_clusters) for numbers, first in parts)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Of the labelling alone."""
        weights = [weight for space in self._spaces for weight in space.labelling.parameters()]
        return {"labelling": torch.optim.Adam(weights, lr=self.config.learning_rate, fused=True)}

    @property
    def _spaces(self) -> list[Space]:
        return [space for space in self.spaces if isinstance(space, Space)]

    @property
    def fewest_images(self) -> int:
        """A mini-batch may be all images."""
        return 2

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """At the very start, find the components of each space."""
        if moment.epoch == 0:
            for space in self._spaces:
                points = points_of(space.components, loader)
                if self.config.start == "kmeans":
                    begin_heads(space.labelling, points, loader.seed)

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Classifiers learn the labelling for some steps, then it moves once; and again."""
        images = batch.images
        with torch.no_grad():
            points = [space.components(images) for space in self._spaces]
        size = min(self.config.mini_batch, len(images))
        for _ in range(self.config.steps):
            chosen = torch.randperm(len(images), generator=batch.generator, device=images.device)[:size]
            yield self._move([rows[chosen] for rows in points])

    def _move(self, points: list[Tensor]) -> Update:
        """Learn the labelling of a mini-batch, then move it; no gradient goes through what the classifiers did."""
        labelling = self._labelled(points)
        self._learn(points, labelling.detach())
        learnt = labelling_loss(self._classified(points), labelling)
        entropy = torch.special.entr(labelling.mean(dim=0)).sum()
        loss = learnt - self.config.entropy_weight * entropy
        terms = {"learnt": learnt, "mean_entropy": entropy}  # `entropy` is that of the sizes, in the history.
        return Update(loss, self.optimizers["labelling"], len(labelling), terms, watched(labelling))

    @torch.no_grad()
    def _learn(self, points: list[Tensor], labelling: Tensor) -> None:
        """The classifier of each space for itself."""
        for space, rows in zip(self._spaces, points, strict=True):
            if self.config.inner_start == "cold":
                for weight in space.classifier.parameters():
                    weight.zero_()
            learn(space.classifier, rows, labelling, self.config.inner_steps, self.config.inner_rate)

    def _labelled(self, points: list[Tensor]) -> Tensor:
        """The labelling of points of each space: the mean of what the spaces say (τ), (B, K)."""
        spaces = zip(self._spaces, points, strict=True)
        return torch.cat([space.labelling(rows) for space, rows in spaces]).softmax(dim=2).mean(dim=0)

    def _classified(self, points: list[Tensor]) -> Tensor:
        """Logits of each space's classifier, (S, B, K)."""
        return torch.cat([space.classifier(rows) for space, rows in zip(self._spaces, points, strict=True)])

    def embed(self, images: Tensor) -> Tensor:
        """Principal components of each space, one after the other."""
        return torch.cat([space.components(images) for space in self._spaces], dim=1)

    def predict(self, images: Tensor) -> Tensor:
        """The labelling."""
        return self._labelled([space.components(images) for space in self._spaces])
