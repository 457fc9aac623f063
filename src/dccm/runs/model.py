"""A trained method: what it says of images, and its file, which cannot run code."""

import json
from collections.abc import Callable, Sequence
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
from dccm.files import write_atomically
from dccm.grouping.agreement import tempered
from dccm.grouping.outliers import Sample, are_far
from dccm.machine import choose_device
from dccm.methods import METHODS, build_method
from dccm.methods.base import Clusterer, GradientMethod
from dccm.runs.confidence import Confidence, confidence_from, read_sample, write_sample
from dccm.runs.config import RunConfig, make_config
from dccm.runs.features import Pretrained
from dccm.training.checkpoint import read_tensors, write_tensors
from dccm.training.progress import OnProgress, Stage, ignore

FORMAT = "dccm-model"
VERSION = 1
_ADDED = {"rows": None, "pretrained": None, "confidence": None, "reject_below": None}
"""What descriptions of older versions lack; their confidence is raw."""


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
        with torch.random.fork_rng():
            torch.manual_seed(config.training.seed)
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

    def loader(self, images: Inputs, views: Sequence[Inputs] = ()) -> Loader:
        """Batches of these images, and of views of them, on the model's device."""
        height, width, channels = images.shape[1:]
        require(
            ImageShape(channels, height, width) == self.shape,
            f"images must be {self.shape.height} x {self.shape.width} with {self.shape.channels} channels "
            f"for this model, got {height} x {width} with {channels}. Resize or convert them.",
        )
        device = next(chain(self.method.parameters(), self.method.buffers())).device
        training = self.config.training
        return Loader(images, batch_size=training.batch_size, seed=training.seed, device=device, views=views)

    def predict_proba(self, images: Inputs) -> Floats:
        """Probability of each cluster, (N, K), calibrated where the model knows how."""
        return self._calibrated(self._over(images, self.method.predict))

    def transform(self, images: Inputs) -> Floats:
        """Deep features, (N, D)."""
        return self._over(images, self.method.embed)

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
        document = {
            "format": FORMAT,
            "version": VERSION,
            "method": self.config.method,
            "preset": self.config.preset,
            "dataset": self.config.dataset,
            "image_shape": self.shape._asdict(),
            "settings": self.config.settings(),
            "rows": self.rows,
            "pretrained": self.pretrained and self.pretrained._asdict(),
            "confidence": self.confidence and self.confidence._asdict(),
            "reject_below": self.reject_below,
        }
        write_sample(self.sample, folder)
        write_atomically(folder / "model.json", json.dumps(document, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path, device: str = "auto") -> "Model":
        """Read what `save` wrote; a run directory is as good as the model folder in it."""
        if (folder / "model" / "model.json").is_file():
            folder = folder / "model"
        document = _read_document(folder / "model.json")
        settings = {name: value for name, value in document["settings"].items() if value is not None}
        config = make_config(document["method"], document["preset"], document["dataset"], settings | {"device": device})
        shape = ImageShape(**document["image_shape"])
        with torch.random.fork_rng():
            method = METHODS[config.method](shape, config.data.n_clusters, config.own)
        _load_weights(method, folder)
        method.eval()
        model = cls(_placed(method, device), shape, config, document["rows"], document["pretrained"])
        model.confidence, model.reject_below = document["confidence"], document["reject_below"]
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


def _load_weights(method: Clusterer[Any], folder: Path) -> None:
    """Give a method the weights in a model folder."""
    tensors = read_tensors(folder / "weights.safetensors").tensors
    try:
        method.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UserError(
            f"The weights in {folder} do not fit the network that model.json describes ({reason}). "
            "Take both files from the same run."
        ) from error


def _read_document(path: Path) -> dict[str, Any]:
    """Read and check `model.json`."""
    require(path.is_file(), f"There is no model in {path.parent}: model.json is missing. Give a run or model folder.")
    try:
        document: dict[str, Any] = _ADDED | json.loads(path.read_text(encoding="utf-8"))
        known = document["format"] == FORMAT
        version = int(document["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not a model description of dccm. Take it from a run or from DCCM.save.") from error
    require(known, f"{path} is not a model description of dccm. Take it from a run or from DCCM.save.")
    require(
        version <= VERSION,
        f"{path} has format version {version}, and this dccm reads up to {VERSION}. Update dccm to load it.",
    )
    wrong = _wrong_fields(document)
    require(not wrong, f"{path} is damaged: {', '.join(wrong)} is missing or wrong. Take a sound copy.")
    for name, read in _READ.items():
        document[name] = None if document[name] is None else read(document[name])
    return document


def _wrong_fields(document: dict[str, Any]) -> list[str]:
    """Fields of a model description that are missing or of the wrong kind."""
    kinds = {"method": str, "preset": str, "dataset": str, "image_shape": dict, "settings": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(document.get(name), kind)]
    if "image_shape" not in wrong and set(document["image_shape"]) != set(ImageShape._fields):
        wrong.append("image_shape")
    if not isinstance(document["rows"], dict | None):
        wrong.append("rows")
    for name, read in _READ.items():
        try:
            _ = None if document[name] is None else read(document[name])
        except (TypeError, ValueError, KeyError):
            wrong.append(name)
    return sorted(wrong)


def _pretrained(stored: dict[str, Any]) -> Pretrained:
    """The encoder that `model.json` names; JSON makes a list of the shape."""
    shape = ImageShape(*map(int, stored["image_shape"]))
    return Pretrained(str(stored["name"]), str(stored["identity"]), shape, int(stored.get("finetune", 0)))


_READ: dict[str, Callable[[Any], Any]] = {
    "pretrained": _pretrained,
    "confidence": confidence_from,
    "reject_below": float,
}
"""What makes of JSON what a model has."""
