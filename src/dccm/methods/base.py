"""The contract of a method."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dccm.data.loader import Batch, Loader
from dccm.networks.encoder import ImageShape
from dccm.training import Update


class GradientMethod(nn.Module, ABC):
    """A method that learns by gradient; the loop of `training.py` runs it.

    All that a run must remember lies in parameters, buffers and `optimizers`, so that a checkpoint holds it.
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
    @abstractmethod
    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizers by name."""

    @property
    def fewest_images(self) -> int:
        """Images that the method needs at least."""
        return 2

    def compile_networks(self) -> None:
        """Let torch.compile rewrite each network; names and weights stay as they are."""
        for network in self.children():
            network.compile()

    def before_epoch(self, loader: Loader, epoch: int) -> None:
        """Renew targets that span the whole data set; most methods have none."""

    @abstractmethod
    def updates(self, batch: Batch) -> Iterator[Update]:
        """The losses to step on for one large batch, one after the other."""

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Features of images, (B, D)."""

    @abstractmethod
    def predict(self, images: Tensor) -> Tensor:
        """Probability of each cluster, (B, K)."""


@torch.no_grad()
def calibrate(method: nn.Module, loader: Loader) -> None:
    """Replace the running statistics of batch norm by those of all images, clean.

    Training mixes perturbed and clean images of many states of the network into the running averages. An image's
    prediction must depend on the image alone, so it is made with the statistics of the population.
    """
    norms = [module for module in method.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # Cumulative mean.
    method.train()
    for images in loader.calibrating():
        method.predict(images)  # type: ignore[operator]
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    method.eval()
