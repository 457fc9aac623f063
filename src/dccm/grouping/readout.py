"""From features to clusters, for methods that learn features only: k-means, and the distance to its centres."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Features = npt.NDArray[np.float32]

_LEAST_SPREAD = 1e-6
"""Of the mean squared length of features: what is nearer is rounding, and images that are the same share a cluster."""


class KMeansReadout(nn.Module):
    """Centres that k-means found among the features of all images.

    Args:
        n_clusters: K.
        n_init: Starts of k-means, of which the best is kept.
    """

    def __init__(self, n_clusters: int, n_init: int = 10) -> None:
        super().__init__()
        self.n_clusters, self.n_init = n_clusters, n_init
        self.centres: Tensor
        self.scale: Tensor
        self.register_buffer("centres", torch.zeros(n_clusters, 0))
        self.register_buffer("scale", torch.ones(()))

    def fit(self, features: Features, seed: int, start: Features | None = None) -> None:
        """Find the centres.

        Args:
            features: Of all images, (N, D).
            seed: Decides the starts.
            start: Centres to begin with, (K, D), in place of random starts.
        """
        from sklearn.cluster import KMeans

        begin: dict[str, Any] = {"n_init": self.n_init} if start is None else {"n_init": 1, "init": start}
        # Without `copy_x` the features are centred in place and put back, which saves as much memory as they take.
        found = KMeans(self.n_clusters, random_state=seed, copy_x=False, **begin).fit(features)
        self.keep(torch.from_numpy(found.cluster_centers_), found.inertia_ / len(features), features)

    def keep(self, centres: Tensor, spread: float, features: Features) -> None:
        """Take centres that were found.

        Args:
            centres: (K, D).
            spread: Mean squared distance of features to their centre.
            features: Of all images, (N, D).
        """
        rounding = _LEAST_SPREAD * float(np.einsum("nd,nd->", features, features)) / len(features)
        device = self.centres.device
        self.centres = centres.to(device, torch.float32)
        self.scale = torch.tensor(max(spread, rounding, 1e-12), device=device)

    def forward(self, features: Tensor) -> Tensor:
        """Soft assignment, (B, K): Student's t of the distance, in units of the mean distance to a centre."""
        if not self.centres.shape[1]:  # Before `fit`, while batch norm gathers its statistics.
            return features.new_full((len(features), self.n_clusters), 1 / self.n_clusters)
        # Far from the origin, distances as torch computes them for many rows have few digits, other ones in each row.
        middle = self.centres.mean(dim=0)
        kernel = 1 / (1 + torch.cdist(features - middle, self.centres - middle).square() / self.scale)
        return kernel / kernel.sum(dim=1, keepdim=True)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: object) -> None:
        """Take centres of any length: how long features are is known only when they have been seen."""
        stored = state_dict.get(f"{prefix}centres")
        if stored is not None and stored.ndim == 2 and len(stored) == self.n_clusters:
            self.centres = torch.zeros_like(stored, device=self.centres.device)
        super()._load_from_state_dict(state_dict, prefix, *rest)
