"""A trained method: what it says of images, and its file, which cannot run code."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dccm.arrays import Floats, ImageShape, Inputs
from dccm.data.loader import Loader
from dccm.errors import UserError, require
from dccm.grouping.agreement import tempered
from dccm.grouping.outliers import Sample, are_far
from dccm.machine import choose_device, require_memory, within_memory
from dccm.methods import METHODS, build_method
from dccm.methods.base import Clusterer, GradientMethod
from dccm.networks.seeds import drawn_from
from dccm.runs.confidence import Confidence, read_sample, write_sample
from dccm.runs.config import RunConfig, kept_config
from dccm.runs.description import FORMAT, Description, RowScale, read_description, write_description
from dccm.runs.features import Pretrained
from dccm.runs.outline import outline
from dccm.training.checkpoint import read_tensors, write_tensors
from dccm.training.progress import OnProgress, Stage, ignore


class Assigned(NamedTuple):
    """What a model says of each image, in their order."""

    clusters: npt.NDArray[np.int64]
    """(N,)"""
    confidences: Floats
    """Probability of that cluster, (N,)."""
    raw: Floats
    """The same before the temperature, (N,)."""
    outliers: npt.NDArray[np.bool_]
    """Whether it is far from all images that the model was trained on, (N,)."""


class Model:
    """A method with its weights, ready to assign images.

    Args:
        method: The method.
        shape: Shape of the images that it takes.
        config: Its settings.
        rows: How rows of numbers become images, for a model that was trained on such.
        pretrained: The encoder whose vectors stand in the place of images, for a model that was trained on such.
    """

    def __init__(
        self,
        method: Clusterer[Any],
        shape: ImageShape,
        config: RunConfig,
        rows: dict[str, Any] | None = None,
        pretrained: Pretrained | None = None,
    ) -> None:
        self.method = method
        self.shape = shape
        self.config = config
        self.rows = rows
        self.pretrained = pretrained
        self.confidence: Confidence | None = None
        self.reject_below: float | None = None
        self.sample: Sample | None = None

    @classmethod
    def untrained(cls, shape: ImageShape, config: RunConfig) -> "Model":
        """Fresh weights, decided by the seed alone; the caller's own random state stays as it is."""
        _require_memory(shape, config)
        with drawn_from(config.training.seed):
            method = build_method(config.method, shape, config.data.n_clusters, config.own)
        return cls(_placed(method, config.training.device), shape, config)

    @property
    def picture_shape(self) -> ImageShape:
        """Shape of the images themselves, also where vectors stand in their place."""
        return self.pretrained.image_shape if self.pretrained else self.shape

    @property
    def learner(self) -> GradientMethod[Any]:
        """The method, where it is known to be one that learns by gradient."""
        assert isinstance(self.method, GradientMethod)
        return self.method

    def loader(
        self, images: Inputs, views: Sequence[Inputs] = (), times: npt.NDArray[np.int64] | None = None
    ) -> Loader:
        """Batches of these images, and of views of them, on the model's device; `times` as for `Loader`."""
        height, width, channels = images.shape[1:]
        require(
            ImageShape(channels, height, width) == self.shape,
            f"images must be {self.shape.height} x {self.shape.width} with {self.shape.channels} channels "
            f"for this model, got {height} x {width} with {channels}. Resize or convert them.",
        )
        device = next(chain(self.method.parameters(), self.method.buffers())).device
        training = self.config.training
        order: dict[str, Any] = {"batch_size": training.batch_size, "seed": training.seed, "times": times}
        return Loader(images, device=device, views=views, **order)

    def predict_proba(self, images: Inputs) -> Floats:
        """Probability of each cluster, (N, K), calibrated where the model knows how."""
        return self._calibrated(self._over(images, self.method.predict))

    def transform(self, images: Inputs) -> Floats:
        """Deep features, (N, D)."""
        return self._over(images, self.method.embed)

    @property
    def feature_size(self) -> int:
        """D, of the deep features."""
        channels, *sides = self.shape
        blank = np.zeros((1, *sides, channels), np.uint8)
        return int(self.transform(blank.astype(np.float16) if self.pretrained else blank).shape[1])

    def evidence(self, images: Inputs) -> Floats:
        """What images are compared by, (N, D): vectors of a pretrained encoder, or deep features."""
        return self._over(images, self._evidence)

    def _evidence(self, batch: Tensor) -> Tensor:
        return batch.flatten(1) if self.shape.is_vector else self.method.embed(batch)

    def _calibrated(self, probabilities: Floats) -> Floats:
        return tempered(probabilities, self.confidence.temperature) if self.confidence else probabilities

    @torch.inference_mode()
    def _over(self, images: Inputs, function: Callable[[Tensor], Tensor]) -> Floats:
        self.method.eval()
        return self.loader(images).over_all(function)

    @torch.inference_mode()
    def assign(
        self,
        images: Inputs,
        *,
        take_features: Callable[[Floats], None] | None = None,
        on_progress: OnProgress = ignore,
    ) -> Assigned:
        """Cluster of each image, in one pass; memory grows by a few bytes per image only.

        Args:
            images: (N, H, W, C).
            take_features: Called with the deep features of some images after the other, (B, D); None: nobody wants
                them.
            on_progress: Called as it gets on.
        """
        self.method.eval()
        assigned = _room(len(images))
        done = 0
        for batch in self.loader(images).ordered():
            rows = slice(done, done + len(batch))
            of_batch = self._assigned(batch, take_features)
            for name in Assigned._fields:
                getattr(assigned, name)[rows] = getattr(of_batch, name)
            done = rows.stop
            on_progress(Stage("assigning", done / len(images)))
        return assigned

    def _assigned(self, batch: Tensor, take_features: Callable[[Floats], None] | None) -> Assigned:
        feature, probability = self.method.embed_and_predict(batch)
        if take_features is not None:
            take_features(feature.cpu().numpy())
        compared = (batch.flatten(1) if self.shape.is_vector else feature).cpu().numpy()
        raw = probability.cpu().numpy()
        outliers = are_far(compared, self.sample) if self.sample else np.zeros(len(batch), bool)
        return Assigned(raw.argmax(axis=1), self._calibrated(raw).max(axis=1), raw.max(axis=1), outliers)

    def save(self, folder: Path) -> None:
        """Write `model.json` and `weights.safetensors` into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(folder / "weights.safetensors", self.method.state_dict(), {"format": FORMAT})
        write_sample(self.sample, folder)
        write_description(folder / "model.json", self.description())

    def description(self) -> Description:
        """What `model.json` says of it."""
        return Description(
            method=self.config.method,
            preset=self.config.preset,
            dataset=self.config.dataset,
            image_shape=self.shape,
            settings=self.config.settings(),
            rows=RowScale(**self.rows) if self.rows else None,
            pretrained=self.pretrained,
            confidence=self.confidence,
            reject_below=self.reject_below,
        )

    @classmethod
    def load(cls, folder: Path, device: str = "auto") -> "Model":
        """Read what `save` wrote; a run directory is as good as the model folder in it."""
        if (folder / "model" / "model.json").is_file():
            folder = folder / "model"
        described = read_description(folder / "model.json")
        settings = {name: value for name, value in described.settings.items() if value is not None}
        config = kept_config(described.method, described.preset, described.dataset, settings, {"device": device})
        method = _with_weights(config, described.image_shape, folder)
        rows = described.rows._asdict() if described.rows else None
        model = cls(_placed(method, device), described.image_shape, config, rows, described.pretrained)
        model.confidence, model.reject_below = described.confidence, described.reject_below
        model.sample = read_sample(folder)
        return model


def _room(count: int) -> Assigned:
    """Room for what is said of all images."""
    return Assigned(
        np.empty(count, np.int64), np.empty(count, np.float32), np.empty(count, np.float32), np.empty(count, np.bool_)
    )


def _placed(method: Clusterer[Any], device: str) -> Clusterer[Any]:
    """The method on its device, weights in the order of memory that convolutions on a CPU like best."""
    method.to(choose_device(device))
    method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return method


def _require_memory(shape: ImageShape, config: RunConfig) -> None:
    """Refuse a network whose weights do not fit into memory, before they are drawn one by one."""
    with within_memory("the network"):
        weights = outline(shape, config).state_dict().values()
    require_memory(sum(weight.numel() * weight.element_size() for weight in weights), "the network")


def _with_weights(config: RunConfig, shape: ImageShape, folder: Path) -> Clusterer[Any]:
    """The method that settings describe, with the weights in a model folder."""
    tensors = read_tensors(folder / "weights.safetensors").tensors
    kind = METHODS[config.method]
    try:
        _require_fit(outline(shape, config), tensors)  # Whatever memory a stranger's settings ask for.
        with drawn_from(0):
            method = kind(shape, config.data.n_clusters, config.own)
        method.load_state_dict(tensors)
    except (RuntimeError, ValueError, OverflowError, TypeError) as error:
        if isinstance(error, UserError):
            raise
        reason = str(error).splitlines()[-1].strip()[:300]
        raise UserError(
            f"The weights in {folder} do not fit the network that model.json describes ({reason}). "
            "Take both files from the same run."
        ) from error
    return method.eval()


def _require_fit(method: Clusterer[Any], tensors: Mapping[str, Tensor]) -> None:
    """Compare what a method has to learn with what is in a file; other state may have any length."""
    for name, weight in method.named_parameters():
        stored = tensors.get(name)
        if stored is None or stored.shape != weight.shape:
            raise ValueError(
                f"{name} must be {tuple(weight.shape)}, got {stored if stored is None else tuple(stored.shape)}"
            )
    for name, value in method.state_dict().items():
        if name in tensors and tensors[name].dtype != value.dtype:
            raise ValueError(f"{name} must be {value.dtype}, got {tensors[name].dtype}")
