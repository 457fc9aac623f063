"""Unsupervised Deep Embedding for Clustering Analysis (Xie et al., ICML 2016).

An auto-encoder learns features; k-means puts centres among them. Then the decoder is dropped: the soft assignment of
features to centres learns a sharper version of itself, which moves features and centres together. The vectors of a
pretrained encoder are features already: there the auto-encoder may give way to a linear layer (`network`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.config import Momentum, Positive, Section, Several, Share
from dccm.data.loader import Batch, Loader, equal_parts
from dccm.errors import require
from dccm.grouping.readout import Features, KMeansReadout
from dccm.methods.base import GradientMethod, features_of
from dccm.methods.per_image import PerImage
from dccm.networks.autoencoder import Network, autoencoder, feature_of
from dccm.networks.base import Encoder, NetworkConfig
from dccm.networks.components import ComponentMap
from dccm.training.update import Moment, Update

STARTS = 20
"""Starts of k-means, of which the best one places the centres."""


@dataclass(frozen=True, kw_only=True)
class DECConfig(Section):
    """Settings of DEC; the defaults are the paper's, and choices of ours where it is silent."""

    network: Network | Literal["linear"] = "dense"
    """The paper's fully connected d-500-500-2000-10, or the encoder that other methods have; on vectors, also a linear
    layer on principal components, which begins as no change and needs no pretraining."""
    pretraining: Share = 2 / 3
    """Share of the run in which the auto-encoder learns; after it, clusters are learnt."""
    corruption: Momentum = 0.0
    """Share of pixels set to zero while the auto-encoder learns; the paper's layers learn one by one with 0.2 of their
    inputs dropped, and then all together without."""
    mini_batch: Several = 256
    """Images in one gradient step."""
    learning_rate: Positive = 1e-3
    """Step size of Adam for the auto-encoder."""
    clustering_rate: Positive = 1e-4
    """Step size of Adam for encoder and centres, when clusters are learnt."""
    encoder: NetworkConfig = NetworkConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.network != "linear" or self.pretraining == 0,
            f"pretraining must be 0 with network = 'linear', which has no decoder, got {self.pretraining:g}. "
            "Take the preset 'features'.",
        )


def soft_assignment(features: Tensor, centres: Tensor) -> Tensor:
    """Similarity of features z, (B, D), and centres μ, (K, D), by Student's t (q, Eq. (1)); rows sum to 1, (B, K)."""
    kernel = 1 / (1 + torch.cdist(features, centres).square())
    return kernel / kernel.sum(dim=1, keepdim=True)


def target_distribution(assignment: Tensor) -> Tensor:
    """The assignment q of all images, (N, K), squared, over the clusters' soft sizes f, and normalised (p, Eq. (3)).

    Squares strengthen what is sure; division keeps large clusters from growing by their size.
    """
    weight = assignment.square() / assignment.sum(dim=0)
    return weight / weight.sum(dim=1, keepdim=True)


def clustering_loss(assignment: Tensor, target: Tensor) -> Tensor:
    """KL divergence of the assignment from its target (Eq. (2)), mean over images; gradient through q alone."""
    return F.kl_div(assignment.log(), target.detach(), reduction="batchmean")


def unit_scale(loader: Loader) -> Tensor:
    """The factor that makes the mean squared pixel of all images 1, as the paper does."""
    total = sum(images.square().sum(dtype=torch.float64) for images in loader.ordered())
    return (loader.images.size / torch.as_tensor(total).clamp_min(1e-12)).sqrt().float()


def corrupt(images: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Set a random share of the values to zero and enlarge the others, so that the mean stays."""
    if not share:
        return images
    keep = torch.rand(images.shape, generator=generator, device=images.device) >= share
    return images * keep / (1 - share)


class DECMethod(GradientMethod[DECConfig]):
    """Auto-encoder, then centres among its features."""

    year = 2016
    citation = "Xie et al., Unsupervised Deep Embedding for Clustering Analysis, ICML 2016"
    learns = "features first, then features and clusters together"
    cost = "1 auto-encoder step per image and pass, later 1 encoder step; dense layers"
    takes_vectors = True
    config_type = DECConfig
    networks = ("encoder", "decoder")

    def __init__(self, shape: ImageShape, n_clusters: int, config: DECConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder, self.decoder, size = _networks(shape, n_clusters, config)
        self.centres = nn.Parameter(torch.zeros(n_clusters, size))
        self.targets = PerImage(n_clusters)  # p of all images, once there are centres.
        self.scale: Tensor
        self.register_buffer("scale", torch.ones(()))  # Of the pixels.

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for each stage."""
        both = [*self.encoder.parameters(), *self.decoder.parameters()]
        clustering = [*self.encoder.parameters(), self.centres]
        return {
            "autoencoder": torch.optim.Adam(both, lr=self.config.learning_rate, fused=True),
            "clustering": torch.optim.Adam(clustering, lr=self.config.clustering_rate, fused=True),
        }

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """Once the auto-encoder has learnt: place the centres, then renew the targets of all images."""
        if moment.epoch == 0:
            self._look(loader)
        if moment.done < self.config.pretraining:
            return
        features = features_of(self, loader)
        if not len(self.targets.rows):
            self._place_centres(features, loader.seed)
        with torch.no_grad():
            found = torch.from_numpy(features).to(self.centres.device)
            self.targets.fill(target_distribution(soft_assignment(found, self.centres)))

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Mini-batches of the stage that the run is in: with targets, or before there are any."""
        order = torch.randperm(len(batch.images), generator=batch.generator, device=batch.images.device)
        known = self.targets.rows
        targets = known[batch.index.to(known.device)] if len(known) else None
        for index in order.tensor_split(equal_parts(len(order), self.config.mini_batch)):
            images = batch.images[index]
            if targets is None:
                decoded = self.decoder(self.embed(corrupt(images, self.config.corruption, batch.generator)))
                loss = F.mse_loss(decoded, self.scale * images)
                yield Update(loss, self.optimizers["autoencoder"], len(index))
            else:
                loss = clustering_loss(self.predict(images), targets[index])
                yield Update(loss, self.optimizers["clustering"], len(index))

    def embed(self, images: Tensor) -> Tensor:
        """The encoder's feature z."""
        return feature_of(self.encoder, self.scale * images)

    def predict(self, images: Tensor) -> Tensor:
        """The soft assignment q."""
        return soft_assignment(self.embed(images), self.centres)

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """A run that ended before its clustering began gets its centres now; targets are no longer needed."""
        super().finish(loader)
        if not len(self.targets.rows):
            self._place_centres(features_of(self, loader), loader.seed)
        self.targets.forget()
        return self

    def _look(self, loader: Loader) -> None:
        """Find what the network must know of all images before it learns."""
        if isinstance(self.encoder, ComponentMap):
            self.encoder.components.fit(loader)
        else:
            self.scale = unit_scale(loader)

    @torch.no_grad()
    def _place_centres(self, features: Features, seed: int) -> None:
        """k-means among the features of all images."""
        found = KMeansReadout(len(self.centres), STARTS)
        found.fit(features, seed)
        self.centres.copy_(found.centres)


def _networks(shape: ImageShape, n_clusters: int, config: DECConfig) -> tuple[Encoder | nn.Module, nn.Module, int]:
    """Encoder, decoder and the length of the feature between them; settings that do not suit the images are refused."""
    suiting = ("dense", "linear") if shape.is_vector else ("dense", "conv")
    require(
        config.network in suiting,
        f"network must be '{suiting[0]}' or '{suiting[1]}' on {'vectors' if shape.is_vector else 'pictures'}, "
        f"got '{config.network}'. Take the preset '{'features' if shape.is_vector else 'paper'}'.",
    )
    if config.network == "linear":
        linear = ComponentMap(shape.channels)
        return linear, nn.Identity(), linear.components.size
    return autoencoder(config.network, config.encoder, shape, n_clusters)
