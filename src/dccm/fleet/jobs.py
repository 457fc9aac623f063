"""What is done to every shard: assign its images by a model, or turn them into vectors.

A job travels to processes and machines as it is, with the bytes of the model in it: they need no disk in common. Where
it arrives it is opened once, and then looks at one batch of images after the other.
"""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dccm.arrays import Bytes, Fit
from dccm.corrections.following import Following, following_of
from dccm.data.decode import Preparation
from dccm.errors import require
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.pretrained import open_encoder
from dccm.runs.confidence import parse_reject, rejected_ones, require_graded
from dccm.runs.contents import ASSIGNMENT_COLUMNS, Assignments, assignment_columns
from dccm.runs.directory import RunDirectory
from dccm.runs.features import encoder_like, halves_of
from dccm.runs.model import Model

Columns = dict[str, Any]
"""What is said of some images, column by column, in their order."""


class Open(Protocol):
    """A job where it is done."""

    wanted: Preparation
    """What images are brought to first."""

    def columns(self, images: Bytes) -> Columns:
        """What is said of these images, (N, H, W, C)."""


class Job(Protocol):
    """What is done to every shard."""

    @property
    def types(self) -> dict[str, str]:
        """Of the columns, as `Table` knows them."""

    @property
    def identity(self) -> dict[str, str]:
        """All that decides the results, beside the images."""

    def opened(self) -> Open:
        """Where it is done."""


@dataclass(frozen=True)
class Assigning:
    """Images get the cluster of a model, as corrected by now."""

    files: dict[str, bytes]
    """Of the model."""
    following: Following | None
    reject_below: float | None
    device: str
    cache: str | None
    identity: dict[str, str]

    @property
    def types(self) -> dict[str, str]:
        """As in the table of assignments."""
        return dict(zip(ASSIGNMENT_COLUMNS[1:], ("int64", "float", "int64", "int64")))

    def opened(self) -> "Assigner":
        """With the model in memory."""
        return Assigner(self)


class Assigner:
    """A model in memory."""

    def __init__(self, job: Assigning) -> None:
        with tempfile.TemporaryDirectory(prefix="dccm-") as folder:
            for name, content in job.files.items():
                (Path(folder) / name).write_bytes(content)
            self.model = Model.load(Path(folder), job.device)
        self._job = job
        known = self.model.pretrained
        self._encoder = encoder_like(known, job.device, job.cache) if known else None
        shape, fit = self.model.picture_shape, self.model.config.data.fit
        self.wanted = Preparation((shape.height, shape.width), fit, shape.channels)

    def columns(self, images: Bytes) -> Columns:
        """Cluster, confidence and the like of these images."""
        following = self._job.following.afresh() if self._job.following else None
        inputs = images if self._encoder is None else _vectors(self._encoder, images)
        if self._encoder is not None and inputs.ndim == 2:
            inputs = inputs[:, np.newaxis, np.newaxis]
        assigned = self.model.assign(inputs, take_features=following.look if following else None)
        clusters = following.clusters(assigned.clusters) if following else assigned.clusters
        rejected = rejected_ones(assigned.confidences, self._job.reject_below)
        found = Assignments((), clusters, assigned.confidences, rejected, assigned.outliers)
        return assignment_columns(found, slice(None))


@dataclass(frozen=True)
class Embedding:
    """Images become vectors of length one by a pretrained encoder."""

    encoder: str
    side: int
    fit: Fit
    device: str
    cache: str | None
    identity: dict[str, str]

    @property
    def types(self) -> dict[str, str]:
        """A list of numbers."""
        return {"feature": "floats"}

    def opened(self) -> "Embedder":
        """With the encoder in memory."""
        return Embedder(self)


class Embedder:
    """An encoder in memory."""

    def __init__(self, job: Embedding) -> None:
        self._encoder = open_encoder(job.encoder, job.device, job.cache)
        require(
            self._encoder.identity == job.identity["encoder"],
            f"The encoder '{job.encoder}' is another one on this machine than on the one that began "
            f"({self._encoder.identity}). Install the same on all.",
        )
        self.wanted = Preparation((job.side, job.side), job.fit, 3)

    def columns(self, images: Bytes) -> Columns:
        """A vector of each of these images."""
        return {"feature": list(_vectors(self._encoder, images).astype(np.float32))}


def assigning(model: str | Path, reject: float | str | None, device: str, cache: str | Path | None) -> Assigning:
    """The job of a model, read and found sound before any shard is."""
    rejecting = parse_reject(reject)
    require(
        rejecting is None or rejecting.share is None,
        f"reject must be a threshold such as below:0.6 where shards are done one by one, got {reject}: which images "
        "are the least sure of all is known at the end alone. Give a threshold.",
    )
    trained = Model.load(Path(model), device)
    if rejecting is not None:
        require_graded(trained.method, trained.config.method)
    if trained.pretrained:
        encoder_like(trained.pretrained, device, cache)
    below = trained.reject_below if rejecting is None else rejecting.below
    folder = Path(model) / "model" if (Path(model) / "model" / "model.json").is_file() else Path(model)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    directory = RunDirectory(model)
    corrected = directory.corrections.read_bytes() if directory.corrections.is_file() else b""
    parts = [part for name, content in files.items() for part in (name.encode(), content)]
    identity = {"model": _digest(*parts), "corrections": _digest(corrected) if corrected else "", "reject": str(below)}
    return Assigning(files, following_of(directory, trained), below, device, _text(cache), identity)


def embedding(encoder: str, image_size: int | None, device: str, cache: str | Path | None) -> Embedding:
    """The job of an encoder."""
    opened = open_encoder(encoder, device, cache)
    side = image_size or opened.preprocessing.side
    identity = {"encoder": opened.identity, "image_size": str(side)}
    return Embedding(encoder, side, "crop", device, _text(cache), identity)


def _vectors(encoder: FeatureEncoder, images: Bytes) -> Any:
    """Vectors or maps of any number of images, some at a time."""
    step = encoder.at_once
    return np.concatenate([halves_of(encoder, images[at : at + step]) for at in range(0, len(images), step)])


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} ".encode() + part)
    return digest.hexdigest()[:16]


def _text(cache: str | Path | None) -> str | None:
    return None if cache is None else str(cache)
