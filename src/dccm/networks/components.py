"""Linear layers on the principal components of vectors: what methods for a frozen encoder learn."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.data.loader import Loader

_COMPONENTS = 64
"""Principal components that are looked at, not whitened: the space of `VectorHead`, so that methods differ in what they
learn, not in what they see."""
_LENGTH = 8.0
"""Of each vector of components: the slope of the softmax."""


class Components(nn.Module):
    """Vectors (B, D, 1, 1) -> their principal components, brought to one length, (B, C).

    Args:
        features: D, the numbers of a vector that are looked at.
        first: Place of the first of them.
    """

    def __init__(self, features: int, first: int = 0) -> None:
        super().__init__()
        self.part = slice(first, first + features)
        self.mean: Tensor
        self.axes: Tensor
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("axes", torch.eye(features, min(_COMPONENTS, features)))

    @property
    def size(self) -> int:
        """C."""
        return self.axes.shape[1]

    def fit(self, loader: Loader) -> None:
        """Take the directions in which all vectors differ most; one pass over them."""
        mean, moments = torch.zeros_like(self.mean), self.mean.new_zeros(len(self.mean), len(self.mean))
        for images in loader.ordered():
            rows = self._rows(images)
            mean += rows.sum(dim=0) / len(loader)
            moments += rows.T @ rows / len(loader)
        self.mean.copy_(mean)
        self.axes.copy_(torch.linalg.eigh(moments - torch.outer(mean, mean))[1].flip(1)[:, : self.size])

    def forward(self, images: Tensor) -> Tensor:
        """Components, (B, C)."""
        return F.normalize((self._rows(images) - self.mean) @ self.axes) * _LENGTH

    def _rows(self, images: Tensor) -> Tensor:
        return images[:, self.part, 0, 0]


class LinearHeads(nn.Module):
    """Several linear layers side by side, each with its own opinion of the clusters.

    Args:
        heads: H.
        size: C, length of a point.
        outputs: K.
    """

    def __init__(self, heads: int, size: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(size)  # As PyTorch begins a linear layer.
        self.weight = nn.Parameter(torch.empty(heads, size, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(heads, 1, outputs).uniform_(-bound, bound))

    def forward(self, points: Tensor) -> Tensor:
        """Logits of points (B, C), in single precision at least, (H, B, K)."""
        return torch.baddbmm(self.bias, points.expand(len(self.weight), -1, -1), self.weight).float()

    @torch.no_grad()
    def begin(self, head: int, centres: Tensor, scale: Tensor) -> None:
        """Let a head say where the nearest centre is.

        Args:
            head: Which.
            centres: (K, C).
            scale: Mean squared distance of points to their centre, in units of which logits are squared distances.
        """
        self.weight[head] = 2 * centres.T / scale
        self.bias[head] = -centres.square().sum(dim=1) / scale


class ComponentMap(nn.Module):
    """Principal components, and a linear layer on them that begins as no change at all.

    Args:
        features: D.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.components = Components(features)
        self.linear = nn.Linear(self.components.size, self.components.size)
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Features of vectors, (B, C)."""
        feature: Tensor = self.linear(self.components(images))
        return feature
