"""The contract of a method."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from dccm.arrays import Floats, ImageShape
from dccm.config import Section
from dccm.data.loader import Batch, Loader, equal_parts, images_at_once
from dccm.grouping.neighbours import ClusterMemory
from dccm.grouping.readout import KMeansReadout
from dccm.networks.base import Encoder, is_encoder
from dccm.training.progress import OnProgress, ignore
from dccm.training.update import Moment, Update
from dccm.training.workers import ALONE, Workers

Config = TypeVar("Config")


class HasMiniBatch(Protocol):
    """What all settings of methods that learn by gradient have."""

    @property
    def mini_batch(self) -> int:
        """Images in one gradient step."""


class Clusterer(nn.Module, ABC, Generic[Config]):
    """What all methods have in common.

    All that a run must remember lies in parameters and buffers (and optimizers), so that files hold it.

    Args:
        shape: Shape of the images.
        n_clusters: K.
        config: The method's own settings.
    """

    year: ClassVar[int]
    citation: ClassVar[str]
    learns: ClassVar[str]
    """In a few words, for `dccm methods`."""
    cost: ClassVar[str]
    """Rough cost, for `dccm methods`."""
    config_type: ClassVar[type[Section]]
    """The method's own settings."""
    takes_vectors: ClassVar[bool] = False
    """Whether vectors of a pretrained encoder may stand in the place of images."""
    needs_vectors: ClassVar[bool] = False
    """Whether nothing but such vectors will do."""
    no_vectors: ClassVar[str] = "learns from pictures"
    """Why vectors will not do, for methods that do not take them; it follows "which"."""

    @abstractmethod
    def __init__(self, shape: ImageShape, n_clusters: int, config: Config) -> None:
        super().__init__()
        self.shape, self.n_clusters, self.config = shape, n_clusters, config

    @property
    def fewest_images(self) -> int:
        """The fewest images that the method can work with."""
        return 2

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Features of images, (B, D)."""

    @abstractmethod
    def predict(self, images: Tensor) -> Tensor:
        """Probability of each cluster, (B, K)."""

    def embed_and_predict(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features, (B, D), and probabilities, (B, K); methods that find both at once say how."""
        return self.embed(images), self.predict(images)


class DirectMethod(Clusterer[Config]):
    """A method without a gradient: it looks at all images, and is done.

    Those that divide their images, and know nothing of others, leave `embed` and `predict` to the memory.
    """

    memory: ClusterMemory

    @abstractmethod
    def fit(self, loader: Loader, on_progress: OnProgress) -> None:
        """Cluster the images.

        Args:
            loader: The images.
            on_progress: Called with a `Stage` whenever something that takes seconds begins or gets further.
        """

    def embed(self, images: Tensor) -> Tensor:
        """The pixels."""
        rows: Tensor = self.memory.pixels(images)
        return rows

    def predict(self, images: Tensor) -> Tensor:
        """The cluster of the nearest image."""
        probability: Tensor = self.memory(images)
        return probability


LearningConfig = TypeVar("LearningConfig", bound=HasMiniBatch)


class GradientMethod(Clusterer[LearningConfig]):
    """A method that learns by gradient; the loop of `training/loop.py` runs it.

    Those that learn features only leave `predict` to the readout, which is fitted when the training is over.
    """

    networks: ClassVar[tuple[str, ...]] = ("encoder",)
    """Attributes that are networks; several processes share their work (`dividing.py`)."""
    one_process: ClassVar[str] = ""
    """Why several processes would be of no use, for methods that refuse them; it follows "as it"."""
    workers: Workers = ALONE
    """The processes that train together."""
    on_progress: OnProgress = staticmethod(ignore)
    """Told of what takes seconds before an epoch."""

    @abstractmethod
    def __init__(self, shape: ImageShape, n_clusters: int, config: LearningConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.readout: KMeansReadout | None = None

    @abstractmethod
    def new_optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """What steps on the losses, by name; weights stay the same objects from here on."""

    @cached_property
    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """By name, for checkpoints and schedules.

        They are made when training asks for them: the first one makes torch import its compiler, which takes seconds,
        and a model that is loaded to predict needs none.
        """
        return self.new_optimizers()

    @property
    def fewest_images(self) -> int:
        """A whole mini-batch."""
        return self.config.mini_batch

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
        """The deep feature D of the encoder; methods without an encoder, or with other features, override this."""
        encoder = encoder_of(self)
        assert encoder is not None
        return encoder(images).feature

    def predict(self, images: Tensor) -> Tensor:
        """Probability of each cluster, (B, K)."""
        assert self.readout is not None, "A method without a readout predicts by itself."
        probability: Tensor = self.readout(self.embed(images))
        return probability

    def embed_and_predict(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features and probabilities; a readout needs no more than the features."""
        if self.readout is None:
            return super().embed_and_predict(images)
        feature = self.embed(images)
        return feature, self.readout(feature)

    def finish(self, loader: Loader) -> "GradientMethod[Any]":
        """After training: population statistics for batch norm, then the readout.

        Returns:
            The method to keep.
        """
        calibrate(self, loader)
        if self.readout is not None:
            self.readout.fit(features_of(self, loader), loader.seed)
        return self


def encoder_of(method: Clusterer[Any]) -> Encoder | None:
    """The method's encoder, if it has one that keeps the contract of `networks/base.py`."""
    encoder = getattr(method, "encoder", None)
    return encoder if is_encoder(encoder) else None


@torch.inference_mode()
def features_of(method: Clusterer[Any], loader: Loader) -> Floats:
    """Features of all images, (N, D), in their order; batch norm uses its stored statistics."""
    method.eval()
    return loader.over_all(method.embed)


@torch.no_grad()
def predictions_of(encoder: Encoder, images: Tensor) -> Tensor:
    """Predictions of a large batch, in pieces of bounded size: large images all at once would take gigabytes."""
    channels, height, width = images.shape[1:]
    pieces = equal_parts(len(images), images_at_once(height, width, channels, statistics=True))
    return torch.cat([encoder(piece).prediction for piece in images.tensor_split(pieces)])


@torch.no_grad()
def calibrate(method: GradientMethod[Any], loader: Loader) -> None:
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
