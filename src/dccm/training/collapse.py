"""Has the run degenerated? Cluster sizes, confidence and links, and plain words when they look wrong."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

_HUGE_CLUSTER = 0.5
"""Share of all images from which one cluster swallows the rest."""
_EVERYTHING_LINKED = 0.9
"""Share of linked pairs from which the graph says nothing any more."""
_PATIENCE = 5
"""Epochs after which a run should have found its first confident images."""


class Watched(NamedTuple):
    """Counts of one large batch, as tensors: nothing waits for their values inside the loop."""

    cluster_sizes: Tensor
    """Images whose most likely cluster is k, (K,)."""
    confident: Tensor
    """Images with a confident pseudo-label."""
    linked: Tensor
    """Share of linked pairs, a sample with itself left out."""
    information: Tensor
    """`cluster_information` of the predictions."""


def cluster_information(prediction: Tensor) -> Tensor:
    """What a prediction tells of an image, in nats: entropy of the mean prediction less the mean entropy of one.

    Large when images are spread over all clusters and each is sure of its own. Clusters that collapse, and those that
    tear a class apart, so that images between the parts stay unsure, both lower it. No label is needed.

    Args:
        prediction: Prediction features, (B, K).

    Returns:
        A single number from 0 to log K.
    """
    return _entropy(prediction.mean(dim=0)) - _entropy(prediction).mean()


def _entropy(prediction: Tensor) -> Tensor:
    entropy: Tensor = torch.special.entr(prediction).sum(dim=-1)
    return entropy


class Health(NamedTuple):
    """The state of the clusters over an epoch."""

    cluster_sizes: list[int]
    confident_share: float
    linked_share: float

    @property
    def dead_clusters(self) -> int:
        """Clusters without any image."""
        return self.cluster_sizes.count(0)

    @property
    def entropy(self) -> float:
        """Entropy of the cluster sizes over its largest possible value: 1 when all are equal, 0 for a single one."""
        total = sum(self.cluster_sizes)
        shares = [size / total for size in self.cluster_sizes if size]
        return max(0.0, -sum(share * math.log(share) for share in shares) / math.log(len(self.cluster_sizes)))

    def record(self) -> dict[str, object]:
        """All figures by name, for the history."""
        return {
            "cluster_sizes": self.cluster_sizes,
            "dead_clusters": self.dead_clusters,
            "entropy": self.entropy,
            "confident_share": self.confident_share,
            "linked_share": self.linked_share,
        }


def warnings(health: Health, epoch: int) -> list[str]:
    """What is wrong with the clusters, and a way out; empty when nothing is.

    Args:
        health: State after the epoch.
        epoch: Epochs done; young runs are given time.
    """
    found = []
    clusters, total = len(health.cluster_sizes), sum(health.cluster_sizes)
    largest = max(health.cluster_sizes) / total
    if health.dead_clusters:
        found.append(
            f"{health.dead_clusters} of {clusters} clusters hold no image. "
            "Ask for fewer clusters, or try logit_norm = balanced."
        )
    if clusters > 2 and largest > _HUGE_CLUSTER:
        found.append(
            f"One cluster holds {largest:.0%} of the images. Try logit_norm = balanced, or lower the learning rate."
        )
    if health.linked_share > _EVERYTHING_LINKED:
        found.append(
            f"{health.linked_share:.0%} of all pairs are linked, so the graph tells nothing apart. "
            "Try logit_norm = balanced, or lower the learning rate."
        )
    if epoch >= _PATIENCE and health.confident_share == 0:
        found.append(
            f"No image is confident after {epoch} epochs: no prediction is sure enough to teach its own label, so only "
            "links between images do. The clusters may be right all the same. Of few images an epoch has few steps: "
            "train longer, or raise the learning rate."
        )
    return found
