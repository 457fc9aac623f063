"""How large clusters are expected to be: the norm on the logits of a head decides it.

Batch norm gives the logits of each cluster the same mean and deviation. That keeps clusters alive, and draws them to
equal sizes: a rare cluster's few high logits are brought down, all its low ones up.
"""

from typing import Literal

import torch
from torch import Tensor, nn

Balance = Literal["none", "uniform", "estimated"]

_SMALLEST_SHARE = 1e-3
"""A cluster is never expected to be smaller than this share of the images, so that it can come back."""


def balance_norm(kind: Balance, n_clusters: int) -> nn.Module:
    """The norm on logits (B, K) that stands for an expectation of the sizes."""
    if kind == "none":
        return SharedScale()
    return nn.BatchNorm1d(n_clusters) if kind == "uniform" else ShareNorm(n_clusters)


class SharedScale(nn.Module):
    """One scale for the logits of all clusters; how they stand to each other stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(1, affine=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, logits: Tensor) -> Tensor:
        """Norm the logits, (B, K)."""
        # What is taken away from all clusters alike changes no probability.
        normed: Tensor = self.norm(logits.reshape(-1, 1)).view_as(logits)
        return normed * self.scale


class ShareNorm(nn.Module):
    """Batch norm, and then the deviation and the mean that the logits of a cluster of some share of the images have.

    What is high for a share p of the images and low for all others has a deviation in proportion to √(p (1 - p)); and
    before an image is looked at, its cluster is a matter of log p.
    """

    def __init__(self, n_clusters: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(n_clusters)
        self.shares: Tensor
        self.register_buffer("shares", torch.full((n_clusters,), 1 / n_clusters))

    def forward(self, logits: Tensor) -> Tensor:
        """Norm the logits, (B, K)."""
        deviation = (self.shares * (1 - self.shares)).sqrt()
        normed: Tensor = self.norm(logits) * (deviation / deviation.mean())
        return normed + (self.shares * len(self.shares)).log()

    def expect(self, sizes: Tensor) -> None:
        """Take clusters of these sizes, (K,), for what is to be expected."""
        shares = (sizes / sizes.sum()).clamp_min(_SMALLEST_SHARE)
        self.shares.copy_(shares / shares.sum())
