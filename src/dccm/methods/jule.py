"""Joint Unsupervised Learning of Deep Representations and Image Clusters (Yang et al., CVPR 2016).

Clustering by merging and learning features take turns: many small clusters, a share of which merges with its closest
one; then features learn that images of one cluster are nearer than those of the clusters around it; then further
merges on better features, until K clusters remain.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Bounds, Count, NotNegative, Positive, Section, Several
from dccm.data.loader import Batch, Loader, equal_parts
from dccm.grouping.degree_linkage import (
    Clusters,
    Neighbours,
    agglomerate,
    cluster_means,
    first_clusters,
    neighbour_graph,
)
from dccm.grouping.neighbours import nearest
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod, calibrate, features_of
from dccm.methods.per_image import PerImage
from dccm.networks import build_encoder
from dccm.networks.autoencoder import feature_of
from dccm.networks.base import NetworkConfig
from dccm.networks.small import small_network
from dccm.training.update import Moment, Update

_GROUP = 4
"""Images of one cluster that enter a mini-batch together: a random one would hold few pairs of small clusters."""
_THUMBNAIL = 16
"""Side in pixels to which images are averaged for the very first merges."""


@dataclass(frozen=True, kw_only=True)
class JULEConfig(Section):
    """Settings of JULE; defaults are the paper's, and choices of ours where it is silent."""

    network: Literal["shared", "small"] = "shared"
    """The encoder that other methods have, or the paper's own, whose features know places in the image."""
    neighbours: Count = 20
    """Nearest neighbours of each image in the graph (K_s)."""
    graph_width: Positive = 1.0
    """Factor on the mean squared distance of neighbours in the graph's weights (a)."""
    rivals: Count = 5
    """Closest clusters that a merge is judged by, and whose images the triplets keep away (K_c)."""
    contrast: NotNegative = 1.0
    """Weight of how far the closest cluster stands out from its rivals (λ)."""
    merge_share: Annotated[float, Bounds(0, 1, without="both")] = 0.9
    """Share of the clusters that is merged away in a period (η). Periods are equal parts of the run that begin with
    merges, after which features learn: as many as have more than K clusters."""
    positive_weight: Positive = 2.0
    """Weight of the distance inside a cluster (γ)."""
    margin: NotNegative = 0.2
    """By how much squared distances to other clusters should be larger."""
    mini_batch: Several = 100
    """Images in one gradient step."""
    learning_rate: Positive = 1e-3
    """Step size of Adam."""
    encoder: NetworkConfig = NetworkConfig()


def triplet_loss(features: Tensor, clusters: Tensor, *, positive_weight: float, margin: float, rivals: int) -> Tensor:
    """Weighted triplet loss: each image, each other one of its cluster, and those of each of the clusters around it.

    Mean of max(0, γ d(i, j) - d(i, C) + margin), d the squared distance, d(i, C) its mean over images of cluster C.
    The nearest images of other clusters in place of whole clusters would leave a single point where all images meet.

    Args:
        features: Of unit length, (B, D).
        clusters: Cluster of each image, (B,).
        positive_weight: γ.
        margin: See `JULEConfig`.
        rivals: Closest other clusters of each cluster, as far as they have images here.
    """
    distance = 2 - 2 * features @ features.T
    member = F.one_hot(clusters.unique(return_inverse=True)[1]).to(distance.dtype)
    to_clusters = distance @ (member / member.sum(dim=0))  # (B, clusters)
    between = (member.T @ to_clusters / member.sum(dim=0).unsqueeze(1)).detach().fill_diagonal_(torch.inf)
    closest = between.topk(min(rivals, len(between) - 1), dim=1, largest=False).indices
    if not closest.numel():
        return 0 * features.sum()
    negative = to_clusters.gather(1, closest[member.argmax(dim=1)])
    hinge = F.relu(positive_weight * distance.unsqueeze(2) - negative.unsqueeze(1) + margin)  # (B, B, rivals)
    positive = member @ member.T - torch.eye(len(clusters), device=clusters.device)
    return (hinge.mean(dim=2) * positive).sum() / positive.sum().clamp_min(1)


def merges_needed(clusters: int, n_clusters: int, merge_share: float) -> int:
    """How often this share of the clusters has to be merged away until K are left."""
    return math.ceil(round(math.log(clusters / n_clusters) / -math.log(1 - merge_share), 6))


def grouped_order(clusters: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """A random order of images in which those of one cluster come `size` at a time, (B,)."""
    order = torch.randperm(len(clusters), generator=generator, device=clusters.device)
    by_cluster = order[clusters[order].argsort(stable=True)]
    group = torch.arange(len(clusters), device=clusters.device) // size
    place = torch.rand(len(clusters), generator=generator, device=clusters.device)[group]
    return by_cluster[place.argsort(stable=True)]


class JULEMethod(GradientMethod[JULEConfig]):
    """An encoder that learns from clusters which merge as it gets better."""

    year = 2016
    citation = "Yang et al., Joint Unsupervised Learning of Deep Representations and Image Clusters, CVPR 2016"
    learns = "features and clusters in turn"
    cost = "1 encoder step per image and pass; merges with N² distances"
    no_vectors = "learns an encoder of pictures while it merges clusters of them"
    config_type = JULEConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: JULEConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.n_clusters = n_clusters
        small = config.network == "small"
        self.encoder = small_network(shape) if small else build_encoder(config.encoder, shape, n_clusters)
        self.readout = KMeansReadout(n_clusters)  # Holds the clusters' means: no k-means is run.
        self.clusters = PerImage(dtype=torch.int64)  # Clusters of all images, once they are known.
        self.begun: Tensor
        self.register_buffer("begun", torch.zeros((), dtype=torch.long))  # Periods.
        self.periods: Tensor
        self.register_buffer("periods", torch.ones((), dtype=torch.long))  # Of the whole run, once that is known.

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Of the encoder."""
        return {"all": torch.optim.Adam(self.encoder.parameters(), lr=self.config.learning_rate)}

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """At the start of a period: merge a share of the clusters; at the very first, clusters of small images."""
        period = int(round(moment.done * int(self.periods), 6))
        if period < self.begun:  # Also when a run goes on from the border of an epoch.
            return
        self.begun.fill_(period + 1)
        if len(self.clusters.rows):
            calibrate(self, loader)
            clusters = self._merge(torch.from_numpy(features_of(self, loader)), self.clusters.rows.cpu().numpy())
        else:
            clusters = self._merge(thumbnails(loader), None)
            later = merges_needed(int(clusters.max()) + 1, self.n_clusters, self.config.merge_share)
            self.periods.fill_(max(1, later))  # The last merges, down to K, end the run.
        self.clusters.fill(torch.from_numpy(clusters))

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Triplets of mini-batches in which each cluster has several images."""
        clusters = self.clusters.rows[batch.index.to(self.clusters.rows.device)]
        order = grouped_order(clusters, _GROUP, batch.generator)
        for index in order.tensor_split(equal_parts(len(order), self.config.mini_batch)):
            loss = triplet_loss(
                self.embed(batch.images[index]),
                clusters[index],
                positive_weight=self.config.positive_weight,
                margin=self.config.margin,
                rivals=self.config.rivals,
            )
            yield Update(loss, self.optimizers["all"], len(index))

    def embed(self, images: Tensor) -> Tensor:
        """Features of unit length."""
        return F.normalize(feature_of(self.encoder, images), dim=1)

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """Cluster the final features from the beginning (JULE-RC), and keep the clusters' means."""
        calibrate(self, loader)
        found = features_of(self, loader)
        features = torch.from_numpy(found)
        clusters = torch.from_numpy(self._merge(features, None, self.n_clusters))
        means = cluster_means(features, clusters)
        spread = (features - means[clusters]).square().sum(dim=1).mean()
        assert self.readout is not None
        self.readout.keep(means, spread.item(), found)
        self.clusters.forget()  # No longer needed.
        return self

    def _merge(self, features: Tensor, clusters: Clusters | None, n_clusters: int | None = None) -> Clusters:
        """Merge clusters by the affinity of features; None: from small clusters of nearest neighbours on."""
        config = self.config
        neighbours = neighbours_of(features.to(self.clusters.rows.device), config.neighbours)
        if clusters is None:
            clusters = first_clusters(neighbours, self.n_clusters)
        wanted = n_clusters or max(self.n_clusters, math.ceil((int(clusters.max()) + 1) * (1 - config.merge_share)))
        graph = neighbour_graph(neighbours, config.graph_width)
        weights: dict[str, Any] = {"rivals": config.rivals, "contrast": config.contrast}
        return agglomerate(features, graph, clusters, wanted, **weights, outliers=wanted > self.n_clusters)


def neighbours_of(features: Tensor, count: int) -> Neighbours:
    """The nearest others of each image, fewer if there are fewer others."""
    number, distance = nearest(features, min(count, len(features) - 1))
    return Neighbours(number, distance.square())


@torch.no_grad()
def thumbnails(loader: Loader) -> Tensor:
    """All images averaged to few pixels, (N, D): large ones as rows of numbers would fill the memory."""
    height, width = loader.images.shape[1:3]
    size = (min(height, _THUMBNAIL), min(width, _THUMBNAIL))
    return torch.from_numpy(loader.over_all(lambda images: F.adaptive_avg_pool2d(images, size).flatten(1)))
