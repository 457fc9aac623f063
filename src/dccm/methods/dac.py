"""Deep Adaptive Image Clustering (Chang et al., ICCV 2017).

Clustering becomes a question about pairs: do two images belong together? Label features that are not negative and of
unit length make their dot product the answer. Pairs above an upper threshold learn to be alike, pairs below a lower
one to be different, and those in between are left out; both thresholds move towards each other, from sure pairs to all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.collapse import Watched
from dccm.correlations.pseudo_graph import similarity
from dccm.data.loader import Batch, equal_parts
from dccm.data.perturb import PerturbationConfig, perturb
from dccm.errors import require
from dccm.methods.starts import SeveralStarts, Start
from dccm.networks.encoder import Encoder, ImageShape, Initialisation, LogitNorm
from dccm.training import Update

LAST = 0.45
"""λ at which u(λ) = 0.95 - λ and l(λ) = 0.455 + 0.1 λ meet, at 0.5."""
_CLOSEST = 1e-6
"""How near to 0 and 1 a similarity may come inside a logarithm."""


@dataclass(frozen=True, kw_only=True)
class DACConfig:
    """Settings of DAC; the thresholds are the paper's, other values ours where it is silent."""

    meeting: float = 0.55
    """Share of the run over which λ grows until the thresholds meet; from then on all pairs count.
    The paper's λ grows as evenly, by a gradient step each epoch, whose length it does not say."""
    logit_norm: LogitNorm = "batch"
    """Norm on the outputs of the last linear layer: none, batch norm, or batch norm with one scale for all clusters."""
    initialisation: Initialisation = "torch"
    """Start of the weights: PyTorch's, or linear layers like the identity and Kaiming-normal convolutions."""
    starts: int = 1
    """Networks that begin with different weights; from 60 % of the run on the worst are dropped, one is left."""
    mini_batch: int = 32
    """Images in one gradient step."""
    uses: int = 1
    """Times that the pairs of a large batch are learnt from before new ones are chosen."""
    learning_rate: float = 1e-3
    """Step size of RMSprop."""

    def __post_init__(self) -> None:
        require(0 < self.meeting <= 1, f"meeting must lie in (0, 1], got {self.meeting:g}. Try 0.55.")
        require(self.mini_batch >= 2, f"mini_batch must be at least 2, got {self.mini_batch}. Try 32.")
        for name in ("uses", "starts"):
            value = getattr(self, name)
            require(value >= 1, f"{name} must be at least 1, got {value}. Give 1 or more.")
        require(self.learning_rate > 0, f"learning_rate must be above 0, got {self.learning_rate:g}. Try 0.001.")


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


def pair_loss(prediction: Tensor, pairs: Pairs) -> Tensor:
    """Binary cross-entropy of the similarity on chosen pairs; mean over all, so that it grows with their share.

    The paper's constraint layer, exp(x) scaled to unit length, is the direction of the softmax: its dot product is the
    cosine of the predictions.
    """
    close = similarity(prediction).clamp(_CLOSEST, 1 - _CLOSEST)
    return F.binary_cross_entropy(close, pairs.alike, weight=pairs.chosen)


class DACMethod(SeveralStarts):
    """An encoder whose label features say which pairs belong together."""

    year = 2017
    citation = "Chang et al., Deep Adaptive Image Clustering, ICCV 2017"
    learns = "features and clusters together"
    cost = "1 encoder step an image and pass"
    sections: ClassVar[list[type[Any]]] = [DACConfig, PerturbationConfig]

    def __init__(self, shape: ImageShape, n_clusters: int, configs: list[Any]) -> None:
        super().__init__(shape, n_clusters, configs)
        self.config: DACConfig
        self.perturbation: PerturbationConfig
        self.config, self.perturbation = configs
        norm, initialisation = self.config.logit_norm, self.config.initialisation
        starts = [
            Start(Encoder(shape, n_clusters, logit_norm=norm, initialisation=initialisation))
            for _ in range(self.config.starts)
        ]
        self.begin(starts, torch.optim.RMSprop, self.config.learning_rate)

    def learn(
        self, start: Start, batch: Batch, prediction: Tensor, optimizer: torch.optim.Optimizer
    ) -> Iterator[Update]:
        """Choose pairs of the large batch by its clean images, then learn from perturbed mini-batches of it.

        The prediction is the label feature, scaled to sum to 1 instead of unit length.
        """
        growth = LAST * min(1.0, batch.done / self.config.meeting)  # λ
        pairs = choose_pairs(similarity(prediction), *thresholds(growth))
        watched = _watched(pairs, prediction)
        minis = equal_parts(len(batch.images), self.config.mini_batch)
        for _ in range(self.config.uses):
            perturbed = perturb(batch.images, self.perturbation, batch.generator)
            order = torch.randperm(len(batch.images), generator=batch.generator, device=batch.images.device)
            for index in order.tensor_split(minis):
                loss = pair_loss(start.encoder(perturbed[index]).prediction, pairs.among(index))
                yield Update(loss, optimizer, len(index), watched=watched)


def _watched(pairs: Pairs, prediction: Tensor) -> Watched:
    """What the pairs of a large batch say about the state of the clusters."""
    sizes = torch.bincount(prediction.argmax(dim=1), minlength=prediction.shape[1])
    links = pairs.alike.sum(dim=1) - 1  # An image is alike to itself.
    return Watched(sizes, (links > 0).sum(), links.mean() / max(1, len(prediction) - 1))
