"""Unsupervised Learning by Predicting Noise (Bojanowski and Joulin, ICML 2017): noise as targets, NAT.

Fix as many random points on the unit sphere as there are images and draw each image's feature to a point of its own.
Which image gets which point is learnt too: in every batch the images may swap their points where that brings points
and features closer together. The points are spread out and never move, so features cannot collapse.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Momentum, Positive, Section, Several
from dccm.data.loader import Batch, Loader, equal_parts
from dccm.data.perturb import PerturbationConfig, perturb
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.methods.per_image import PerImage
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.training.update import Moment, Update


@dataclass(frozen=True, kw_only=True)
class NATConfig(Section):
    """Settings of NAT."""

    target_size: Several = 64
    """Dimensions of the sphere's space (d); ours, the size of the encoder's deep feature for 32-pixel images."""
    mini_batch: Several = 256
    """Images in one gradient step, among which targets are swapped; the paper's."""
    learning_rate: Positive = 0.01
    """Step size of gradient descent; ours."""
    momentum: Momentum = 0.9
    """Share of the last step that goes on; ours."""
    encoder: NetworkConfig = NetworkConfig()
    perturbation: PerturbationConfig = PerturbationConfig()


class NATMethod(GradientMethod[NATConfig]):
    """An encoder onto the sphere, the targets there, and who has which."""

    year = 2017
    citation = "Bojanowski and Joulin, Unsupervised Learning by Predicting Noise, ICML 2017"
    learns = "features, by matching images to fixed random targets"
    cost = "1 encoder step per image and pass; 1 assignment per mini-batch"
    no_vectors = "learns an encoder from perturbed pictures"
    config_type = NATConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: NATConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder = build_encoder(config.encoder, shape, self.config.target_size)
        self.targets = PerImage(self.config.target_size)
        self.assignment = PerImage(dtype=torch.int64)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        sgd = torch.optim.SGD(self.parameters(), lr=self.config.learning_rate, momentum=self.config.momentum)
        return {"all": sgd}

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """At the very start, draw the targets; they come in random order, so image n takes target n."""
        if moment.epoch == 0:
            self.targets.fill(noise_targets(len(loader), self.config.target_size, loader.seed))
            self.assignment.fill(torch.arange(len(loader)))

    def updates(self, batch: Batch) -> Iterator[Update]:
        """In each mini-batch swap targets, then draw the features to them (Algorithm 1)."""
        places = torch.arange(len(batch.images), device=batch.images.device)
        index = batch.index.to(places.device)
        for part in places.tensor_split(equal_parts(len(places), self.config.mini_batch)):
            images = perturb(batch.images[part], self.config.perturbation, batch.generator)
            features = F.normalize(self.encoder(images).logits)
            targets = self._swap(features, index[part])
            yield Update(matching_loss(features, targets), self.optimizers["all"], len(part))

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """Fit the readout; targets are no longer needed."""
        super().finish(loader)
        self.targets.forget()
        self.assignment.forget()
        return self

    @torch.no_grad()
    def _swap(self, features: Tensor, index: Tensor) -> Tensor:
        """Share out the targets of these images among them anew; returns the target that each image has now."""
        held = self.assignment.rows[index]
        chosen = held[best_assignment(features, self.targets.rows[held])]
        self.assignment.rows[index] = chosen
        return self.targets.rows[chosen]


def noise_targets(count: int, size: int, seed: int) -> Tensor:
    """Points spread evenly over the unit sphere (Y of the paper), (count, size)."""
    noise = np.random.default_rng(seed).standard_normal((count, size), dtype=np.float32)
    return F.normalize(torch.from_numpy(noise))


def best_assignment(features: Tensor, targets: Tensor) -> Tensor:
    """For each feature the target that it gets when all distances together are smallest (P of the paper), (B,).

    The Hungarian algorithm runs on the CPU: this is the one place where the loop waits for values.
    """
    from scipy.optimize import linear_sum_assignment

    # Between points of the sphere, the largest product is the smallest distance.
    product = features @ targets.T
    _, chosen = linear_sum_assignment(product.float().cpu().numpy(), maximize=True)
    return torch.from_numpy(chosen).to(features.device)


def matching_loss(features: Tensor, targets: Tensor) -> Tensor:
    """Half the mean squared distance of features and their targets, (B, D) each: the paper's square loss."""
    return 0.5 * (features - targets).square().sum(dim=1).mean()
