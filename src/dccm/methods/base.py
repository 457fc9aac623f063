"""The contract of a method."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dccm.data.loader import Batch, Loader
from dccm.evaluation.readout import Features, KMeansReadout
from dccm.networks.encoder import Encoder, ImageShape
from dccm.training import Moment, Report, Update


class Clusterer(nn.Module, ABC):
    """What all methods have in common.

    All that a run must remember lies in parameters and buffers (and optimizers), so that files hold it.
    """

    year: ClassVar[int]
    citation: ClassVar[str]
    learns: ClassVar[str]
    """In a few words, for `dccm methods`."""
    cost: ClassVar[str]
    """Rough cost, for `dccm methods`."""
    sections: ClassVar[list[type[Any]]]
    """The method's own settings."""

    @abstractmethod
    def __init__(self, shape: ImageShape, n_clusters: int, configs: list[Any]) -> None:
        """Build the networks and optimizers.

        Args:
            shape: Shape of the images.
            n_clusters: K.
            configs: One instance of each of `sections`.
        """
        super().__init__()

    @property
    def fewest_images(self) -> int:
        """Images that the method needs at least."""
        return 2

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Features of images, (B, D)."""

    @abstractmethod
    def predict(self, images: Tensor) -> Tensor:
        """Probability of each cluster, (B, K)."""


class DirectMethod(Clusterer):
    """A method without a gradient: it looks at all images, and is done."""

    @abstractmethod
    def fit(self, loader: Loader, report: Report) -> None:
        """Cluster the images.

        Args:
            loader: The images.
            report: Called with a `Stage` whenever something that takes seconds begins or gets on.
        """


class GradientMethod(Clusterer):
    """A method that learns by gradient; the loop of `training.py` runs it.

    Those that learn features only leave `predict` to the readout, which is fitted when the training is over.
    """

    config: Any
    """The method's own section; every one has a `mini_batch`."""
    optimizers: Mapping[str, torch.optim.Optimizer]
    """By name, for checkpoints and schedules."""

    @abstractmethod
    def __init__(self, shape: ImageShape, n_clusters: int, configs: list[Any]) -> None:
        super().__init__(shape, n_clusters, configs)
        self.readout: KMeansReadout | None = None

    @property
    def fewest_images(self) -> int:
        """A whole mini-batch."""
        return int(self.config.mini_batch)

    def compile_networks(self) -> None:
        """Let torch.compile rewrite each network; names and weights stay as they are."""
        for network in self.children():
            network.compile()

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """Renew targets that span the whole data set; most methods have none."""

    @abstractmethod
    def updates(self, batch: Batch) -> Iterator[Update]:
        """The losses to step on for one large batch, one after the other."""

    def embed(self, images: Tensor) -> Tensor:
        """The deep feature D of the encoder; methods whose features are others say so."""
        encoder = self.encoder
        assert isinstance(encoder, Encoder)
        feature: Tensor = encoder(images).feature
        return feature

    def predict(self, images: Tensor) -> Tensor:
        """Probability of each cluster, (B, K)."""
        assert self.readout is not None, "A method without a readout predicts by itself."
        probability: Tensor = self.readout(self.embed(images))
        return probability

    def finish(self, loader: Loader) -> None:
        """After training: population statistics for batch norm, then the readout."""
        calibrate(self, loader)
        if self.readout is not None:
            self.readout.fit(features_of(self, loader), loader.seed)


@torch.inference_mode()
def features_of(method: Clusterer, loader: Loader) -> Features:
    """Features of all images, (N, D), in their order; batch norm uses its stored statistics."""
    method.eval()
    return loader.over_all(method.embed)


@torch.no_grad()
def calibrate(method: GradientMethod, loader: Loader) -> None:
    """Replace the running statistics of batch norm by those of all images, clean.

    Training mixes perturbed and clean images of many states of the network into the running averages. An image's
    prediction must depend on the image alone, so it is made with the statistics of the population.
    """
    norms = [module for module in method.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
    if not norms:
        return
    before = [(norm.momentum, {name: value.clone() for name, value in norm.state_dict().items()}) for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # Cumulative mean.
    method.train()
    for images in loader.calibrating():
        method.predict(images)
    for norm, (momentum, state) in zip(norms, before, strict=True):
        norm.momentum = momentum
        if norm.num_batches_tracked == 0:  # Part of a network that predictions do not need.
            norm.load_state_dict(state)
    method.eval()
