"""A trained method: what it says of images, and its file, which cannot run code."""

import json
from collections.abc import Callable
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
from dccm.machine import choose_device
from dccm.methods import METHODS, build_method
from dccm.methods.base import Clusterer, GradientMethod
from dccm.runs.config import RunConfig, make_config
from dccm.runs.features import Pretrained
from dccm.training.checkpoint import read_tensors, write_tensors
from dccm.training.progress import OnProgress, Stage, ignore

FORMAT = "dccm-model"
VERSION = 1


class Assigned(NamedTuple):
    """What a model says of each image, in their order."""

    clusters: npt.NDArray[np.int64]
    """(N,)"""
    confidences: Floats
    """Probability of that cluster, (N,)."""


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

    def loader(self, images: Inputs) -> Loader:
        """Batches of these images on the model's device."""
        height, width, channels = images.shape[1:]
        require(
            ImageShape(channels, height, width) == self.shape,
            f"images must be {self.shape.height} x {self.shape.width} with {self.shape.channels} channels "
            f"for this model, got {height} x {width} with {channels}. Resize or convert them.",
        )
        device = next(chain(self.method.parameters(), self.method.buffers())).device
        training = self.config.training
        return Loader(images, batch_size=training.batch_size, seed=training.seed, device=device)

    def predict_proba(self, images: Inputs) -> Floats:
        """Probability of each cluster, (N, K)."""
        return self._over(images, self.method.predict)

    def transform(self, images: Inputs) -> Floats:
        """Deep features, (N, D)."""
        return self._over(images, self.method.embed)

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
        assigned = Assigned(np.empty(len(images), np.int64), np.empty(len(images), np.float32))
        done = 0
        for batch in self.loader(images).ordered():
            probabilities = self._probabilities(batch, take_features)
            rows = slice(done, done + len(batch))
            assigned.clusters[rows] = probabilities.argmax(axis=1)
            assigned.confidences[rows] = probabilities.max(axis=1)
            done = rows.stop
            on_progress(Stage("assigning", done / len(images)))
        return assigned

    def _probabilities(self, batch: Tensor, take_features: Callable[[Floats], None] | None) -> Floats:
        if take_features is None:
            return self.method.predict(batch).cpu().numpy()
        feature, probability = self.method.embed_and_predict(batch)
        take_features(feature.cpu().numpy())
        return probability.cpu().numpy()

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
        }
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
        return cls(_placed(method, device), shape, config, document["rows"], document["pretrained"])


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
        document: dict[str, Any] = {"rows": None, "pretrained": None} | json.loads(path.read_text(encoding="utf-8"))
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
    document["pretrained"] = document["pretrained"] and _pretrained(document["pretrained"])
    return document


def _wrong_fields(document: dict[str, Any]) -> list[str]:
    """Fields of a model description that are missing or of the wrong kind."""
    kinds = {"method": str, "preset": str, "dataset": str, "image_shape": dict, "settings": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(document.get(name), kind)]
    if "image_shape" not in wrong and set(document["image_shape"]) != set(ImageShape._fields):
        wrong.append("image_shape")
    if not isinstance(document["rows"], dict | None):
        wrong.append("rows")
    try:
        _ = document["pretrained"] and _pretrained(document["pretrained"])
    except (TypeError, ValueError, KeyError):
        wrong.append("pretrained")
    return sorted(wrong)


def _pretrained(stored: dict[str, Any]) -> Pretrained:
    """The encoder that `model.json` names; JSON makes a list of the shape."""
    shape = ImageShape(*map(int, stored["image_shape"]))
    return Pretrained(str(stored["name"]), str(stored["identity"]), shape, int(stored.get("finetune", 0)))
