"""Clusters of vectors: one linear layer, begun where k-means ends, in the place of a whole encoder.

Vectors of a pretrained encoder know the images already. What is left to learn is where one cluster ends; a layer that
begins at random would first have to forget its own opinion.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.networks.balance import Balance, ShareNorm, balance_norm
from dccm.networks.base import EncoderOutput

_COMPONENTS = 64
"""Principal components that are looked at; not whitened, as that hurt on most sets that were tried."""
_LENGTH = 8.0
"""Of each vector of components: the slope of the softmax."""


class VectorHead(nn.Module):
    """Vectors (B, D, 1, 1) -> predictions; keeps the contract of `networks/base.py`.

    Args:
        features: D.
        outputs: Length of the prediction feature.
        balance: Sizes of clusters that are expected.
    """

    def __init__(self, features: int, outputs: int, balance: Balance = "uniform") -> None:
        super().__init__()
        size = min(_COMPONENTS, features)
        self.mean: Tensor
        self.axes: Tensor
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("axes", torch.eye(features, size))
        self.output = nn.Linear(size, outputs)
        self.norm = balance_norm(balance, outputs)

    @property
    def logit_norm(self) -> nn.Module:
        """That of the balance."""
        return self.norm

    @property
    def description(self) -> str:
        """One linear layer."""
        return f"one linear layer on {self.feature_size} components"

    @property
    def map_channels(self) -> int:
        """Numbers of a vector."""
        return len(self.mean)

    @property
    def feature_size(self) -> int:
        """Components that are looked at."""
        return self.axes.shape[1]

    def forward(self, images: Tensor) -> EncoderOutput:
        """All layers; maps are the vectors themselves."""
        feature = self.feature(images)
        logits = self.output(feature)
        prediction = F.softmax(self.norm(logits.float()), dim=1)
        return EncoderOutput(images, images, feature, logits, prediction)

    def feature_map(self, images: Tensor) -> Tensor:
        """The vectors themselves."""
        return images

    def conv(self, feature_map: Tensor) -> Tensor:
        """The vectors themselves."""
        return feature_map

    def feature(self, conv: Tensor) -> Tensor:
        """Principal components, brought to one length."""
        return F.normalize((self.vectors(conv) - self.mean) @ self.axes) * _LENGTH

    def vectors(self, conv: Tensor) -> Tensor:
        """The vectors as rows, (B, D)."""
        return conv.flatten(1)

    def look(self, mean: Tensor, covariance: Tensor) -> None:
        """Take the directions in which vectors differ most.

        Args:
            mean: Of all vectors, (D,).
            covariance: Of all vectors, (D, D).
        """
        largest = torch.linalg.eigh(covariance)[1].flip(1)[:, : self.feature_size]
        self.mean.copy_(mean)
        self.axes.copy_(largest)

    @torch.no_grad()
    def begin(self, centres: Tensor, sizes: Tensor) -> None:
        """Give each cluster a centre: the largest logit is then that of the nearest one.

        Half the squared distance to a centre is half the square of the feature, the same for all clusters, less this.

        Args:
            centres: (K, components).
            sizes: Images that are nearest to each, (K,).
        """
        if isinstance(self.norm, ShareNorm):
            self.norm.expect(sizes)
        self.output.weight.copy_(centres)
        self.output.bias.copy_(-centres.square().sum(dim=1) / 2)
