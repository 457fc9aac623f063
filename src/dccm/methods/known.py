"""What is known of clusters before a run begins: those that no image gets, and images that people put into theirs."""

import torch
from torch import Tensor, nn

from dccm.correlations import targets
from dccm.correlations.targets import Targets
from dccm.errors import UserError, require
from dccm.networks.base import EncoderOutput
from dccm.training.collapse import Watched, cluster_information

_SMALLEST = 1e-12
"""Keeps what is left finite where a network is sure of a cluster that is gone."""


class KnownClusters(nn.Module):
    """What people said of clusters, which is no weight: whoever loads or resumes a run says it again.

    Args:
        n_clusters: K.
        without: Numbers of clusters that no image gets, as the setting of that name.
    """

    def __init__(self, n_clusters: int, without: str) -> None:
        super().__init__()
        gone = gone_clusters(without, n_clusters)
        self.kept = [cluster for cluster in range(n_clusters) if cluster not in gone]
        self.labels: Tensor
        self.register_buffer("labels", torch.zeros(0, dtype=torch.int64), persistent=False)

    @property
    def labels_known(self) -> bool:
        """Whether people said anything of the images."""
        return len(self.labels) > 0

    def teach(self, labels: Tensor) -> None:
        """Take the cluster of each image, (N,); -1 where nobody said."""
        self.labels = labels.to(self.labels)

    def told(self, prediction: Tensor, index: Tensor) -> Tensor:
        """Predictions to mine from, (B, K): people's where they said something.

        Args:
            prediction: The network's.
            index: Position of each image in the data set, (B,).
        """
        prediction = self._renormed(prediction)
        if not self.labels_known:
            return prediction
        return targets.told(prediction, self.labels[index.to(self.labels.device)])

    def among(self, output: EncoderOutput) -> EncoderOutput:
        """The same with a prediction among the clusters that are there."""
        return output._replace(prediction=self._renormed(output.prediction))

    def _renormed(self, prediction: Tensor) -> Tensor:
        if len(self.kept) == prediction.shape[1]:
            return prediction
        there = torch.zeros_like(prediction[0])
        there[self.kept] = 1
        left = prediction * there
        return left / left.sum(dim=1, keepdim=True).clamp_min(_SMALLEST)

    def watched(self, prediction: Tensor, targets: Targets) -> Watched:
        """What the targets of a large batch, and the predictions, (B, K), say about the clusters that are there."""
        count, n_clusters = prediction.shape
        sizes = torch.bincount(targets.label, minlength=n_clusters)[self.kept]
        linked = (targets.graph.sum() - count) / max(1, count * (count - 1))
        return Watched(sizes, targets.confident.sum(), linked, cluster_information(prediction))


def gone_clusters(without: str, n_clusters: int) -> set[int]:
    """The clusters that the setting `without` names."""
    try:
        gone = {int(number) for number in without.split(",")} if without else set()
    except ValueError as error:
        raise UserError(f"without must be numbers of clusters such as 3,7, got '{without[:50]}'.") from error
    outside = sorted(cluster for cluster in gone if not 0 <= cluster < n_clusters)
    require(not outside, f"without must name clusters from 0 to {n_clusters - 1}, got {outside[:1]}. Leave them out.")
    require(
        len(gone) <= n_clusters - 2,
        f"without must leave at least 2 of {n_clusters} clusters, got '{without[:50]}'. Name fewer.",
    )
    return gone
