"""Deep Clustering for Unsupervised Learning of Visual Features (Caron et al., ECCV 2018): DeepCluster.

Before each epoch, group the features of all images by k-means; during the epoch, learn to classify perturbed images
by the groups found. Two trivial solutions are kept out: an empty cluster takes over a part of another one, and images
are drawn so that all clusters count equally, however large they are.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Momentum, NotNegative, Positive, Section, Several
from dccm.data.loader import Batch, Loader, equal_parts
from dccm.data.perturb import PerturbationConfig, perturb
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod, calibrate, features_of
from dccm.methods.per_image import PerImage
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.training.update import Moment, Update

_SCORES = 2**22
"""Scores of points and centres in memory at once."""
_NUDGE = 1e-3
"""Deviation of a refilled centre from its donor; points lie on the unit sphere."""
_NEGLIGIBLE = 1e-6
"""Share of the largest variance below which a direction is rounding, not to be blown up by whitening."""


@dataclass(frozen=True, kw_only=True)
class DeepClusterConfig(Section):
    """Settings of DeepCluster."""

    overclustering: Count = 10
    """Pseudo-classes for each of the K clusters wanted; the paper takes 10,000 for 1000 classes."""
    components: Count = 32
    """Principal components that are clustered, at most; the paper keeps 256 of 4096, our features have 64 or 256."""
    kmeans_steps: Count = 20
    """Rounds of k-means before each epoch; ours."""
    mini_batch: Several = 256
    """Images in one gradient step; the paper's."""
    learning_rate: Positive = 0.05
    """Step size of gradient descent; of the size that the paper trains with."""
    momentum: Momentum = 0.9
    """Share of the last step that goes on; the paper's."""
    weight_decay: NotNegative = 1e-5
    """Pull of all weights towards 0; the paper has one, its size here is ours."""
    encoder: NetworkConfig = NetworkConfig()
    perturbation: PerturbationConfig = PerturbationConfig()


class DeepClusterMethod(GradientMethod[DeepClusterConfig]):
    """An encoder whose last layer tells the pseudo-classes of the epoch apart."""

    year = 2018
    citation = "Caron et al., Deep Clustering for Unsupervised Learning of Visual Features, ECCV 2018"
    learns = "features, by classifying images into clusters of the features"
    cost = "1 encoder step per image and pass; 2 looks at all images and 1 k-means per epoch"
    no_vectors = "learns an encoder from perturbed pictures"
    config_type = DeepClusterConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: DeepClusterConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.pseudo_classes = self.config.overclustering * n_clusters
        self.encoder = build_encoder(config.encoder, shape, self.pseudo_classes)
        self.pseudo_labels = PerImage(dtype=torch.int64)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        sgd = torch.optim.SGD(
            self.parameters(),
            lr=self.config.learning_rate,
            momentum=self.config.momentum,
            weight_decay=self.config.weight_decay,
        )
        return {"all": sgd}

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """Cluster the features, and begin with a new classifier: numbers of clusters mean nothing from one to the next.

        All of it follows from the weights, the seed and the epoch, so that a run resumed here does the same again.
        """
        generator = _generator(loader.seed, moment.epoch)
        calibrate(self, loader)
        points = whitened(torch.from_numpy(features_of(self, loader)), self.config.components)
        classes = min(self.pseudo_classes, len(points))
        self.pseudo_labels.fill(kmeans_labels(points, classes, self.config.kmeans_steps, generator))
        self._reset_classifier(generator)

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Learn the pseudo-labels of images drawn evenly from all clusters."""
        index = batch.index.to(batch.images.device)
        labels = self.pseudo_labels.rows[index]
        weight = equal_weights(self.pseudo_labels.rows, self.pseudo_classes)[index]
        drawn = torch.multinomial(weight, len(index), replacement=True, generator=batch.generator)
        for part in drawn.tensor_split(equal_parts(len(drawn), self.config.mini_batch)):
            images = perturb(batch.images[part], self.config.perturbation, batch.generator)
            loss = F.cross_entropy(self.encoder(images).logits, labels[part])
            yield Update(loss, self.optimizers["all"], len(part))

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """Fit the readout; pseudo-labels are no longer needed."""
        super().finish(loader)
        self.pseudo_labels.forget()
        return self

    @torch.no_grad()
    def _reset_classifier(self, generator: torch.Generator) -> None:
        """Start the last layer anew, as PyTorch starts one, without the momentum of the old one."""
        bound = 1 / math.sqrt(self.encoder.feature_size)
        for parameter in self.encoder.output.parameters():
            parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))
            self.optimizers["all"].state.pop(parameter, None)


def whitened(features: Tensor, components: int) -> Tensor:
    """Principal components with variance 1 each, then every image's brought to length 1, (N, components or fewer)."""
    centred = features.double() - features.double().mean(dim=0)
    variance, axes = torch.linalg.eigh(centred.T @ centred / len(centred))
    variance, axes = variance.flip(0)[:components].clamp_min(0), axes.flip(1)[:, :components]
    kept = variance >= _NEGLIGIBLE * variance[0]
    scale = variance[kept].sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    return F.normalize(centred @ axes[:, kept] / scale).float()


def kmeans_labels(points: Tensor, count: int, steps: int, generator: torch.Generator) -> Tensor:
    """Cluster of each point, (N,), by k-means from `count` of the points, drawn at random."""
    centres = points[torch.randperm(len(points), generator=generator)[:count]]
    for _ in range(steps):
        labels = nearest(points, centres)
        sizes = torch.bincount(labels, minlength=count)
        sums = torch.zeros_like(centres).index_add_(0, labels, points)
        centres = refilled(sums / sizes.clamp_min(1).unsqueeze(1), sizes, generator)
    return nearest(points, centres)


def nearest(points: Tensor, centres: Tensor) -> Tensor:
    """The nearest centre of each point, (N,)."""
    offset = centres.square().sum(dim=1) / 2
    pieces = points.split(max(1, _SCORES // len(centres)))
    return torch.cat([(piece @ centres.T - offset).argmax(dim=1) for piece in pieces])


def refilled(centres: Tensor, sizes: Tensor, generator: torch.Generator) -> Tensor:
    """Put each empty cluster's centre beside that of a random other one, so that they share its points.

    Args:
        centres: (C, D).
        sizes: Points of each cluster, (C,); at least C in all, so that some cluster has two when one has none.
        generator: Draws the other cluster and the direction.
    """
    centres, donors = centres.clone(), (sizes > 1).float()
    for empty in (sizes == 0).nonzero().flatten():
        donor = torch.multinomial(donors, 1, generator=generator)[0]
        nudge = _NUDGE * torch.randn(centres.shape[1], generator=generator)
        centres[empty] = centres[donor] + nudge
        centres[donor] -= nudge  # The border between the two goes through the middle of the points.
    return centres


def equal_weights(labels: Tensor, count: int) -> Tensor:
    """Weight of each image with which clusters are drawn equally often, (N,): one over the size of its cluster."""
    ones = torch.ones(len(labels), device=labels.device)
    sizes = torch.zeros(count, device=labels.device).index_add_(0, labels, ones)
    return 1 / sizes[labels]


def _generator(seed: int, epoch: int) -> torch.Generator:
    state = np.random.SeedSequence([seed, epoch]).generate_state(1)
    return torch.Generator().manual_seed(int(state[0]))
