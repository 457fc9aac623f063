"""What a model knows of its own confidence: the temperature, whom to reject, and what lies far from everything."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from dccm.documents import filled, named_if_broken
from dccm.errors import require
from dccm.grouping.neighbours import ClusterMemory
from dccm.grouping.outliers import Sample
from dccm.training.checkpoint import read_tensors, write_tensors

_SAMPLE = "outliers.safetensors"
_RULE = "reject must be a share above 0 and below 1, or below:T with a confidence T from 0 to 1"
_EXAMPLES = "For example 0.1, or below:0.6."


class _Stored(NamedTuple):
    """The document beside a sample."""

    far: float


class Confidence(NamedTuple):
    """What makes a model's probabilities mean something; `model.json` holds it."""

    temperature: float
    """By which the logarithms of the probabilities are divided."""
    agreement: float
    """Share of images that other clusterings put into the same cluster."""


class Reject(NamedTuple):
    """Which images get no cluster."""

    share: float | None = None
    """The least sure ones, of the images that the model is trained on; the threshold found there holds for others."""
    below: float | None = None
    """Those whose confidence is below this."""


def parse_reject(given: float | str | None) -> Reject | None:
    """Read a share such as 0.1, or a threshold such as `below:0.6`; None: no image is rejected."""
    if given is None or isinstance(given, bool):
        require(given is None, f"{_RULE}, got {given}. {_EXAMPLES}")
        return None
    kind, colon, amount = str(given).rpartition(":")
    value = _number(amount)
    sound = 0 <= value <= 1 if colon and kind == "below" else not colon and 0 < value < 1
    require(sound, f"{_RULE}, got {given}. {_EXAMPLES}")
    return Reject(below=value) if colon else Reject(share=value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def require_graded(method: nn.Module, name: str) -> None:
    """Refuse to reject where a method is equally sure of all images; known before it is trained."""
    require(
        not isinstance(getattr(method, "memory", None), ClusterMemory),
        f"reject needs a confidence that differs between images, and the method '{name}' gives all the same. "
        "Leave it out, or take another method, such as dccm or kmeans.",
    )


def threshold(reject: Reject, confidences: npt.NDArray[np.floating[Any]]) -> float:
    """The confidence below which images are rejected.

    Of equal confidences all are kept, so no more than the share is rejected.
    """
    if reject.below is not None:
        return reject.below
    assert reject.share is not None
    return float(np.sort(confidences)[int(reject.share * len(confidences))])


def graded_threshold(
    reject: Reject | None, method: nn.Module, name: str, confidences: npt.NDArray[np.floating[Any]]
) -> float | None:
    """The same for the images of a method by this name, whose confidences must differ; None: no image is rejected."""
    if reject is None:
        return None
    require_graded(method, name)
    return threshold(reject, confidences)


def rejected_ones(confidences: npt.NDArray[np.floating[Any]], below: float | None) -> npt.NDArray[np.bool_]:
    """Whether each image is rejected, (N,); None: none is."""
    return np.zeros(len(confidences), bool) if below is None else confidences < below


def write_sample(sample: Sample | None, folder: Path) -> None:
    """Write `outliers.safetensors` into a model folder, in half precision."""
    if sample is None:
        (folder / _SAMPLE).unlink(missing_ok=True)  # Of another model.
        return
    points = torch.from_numpy(sample.points.astype(np.float16))
    write_tensors(folder / _SAMPLE, {"points": points}, {"far": sample.far})


def read_sample(folder: Path) -> Sample | None:
    """What `outliers.safetensors` holds; None: the model is of an older version, or had too few images."""
    if not (folder / _SAMPLE).is_file():
        return None
    tensors, document = read_tensors(folder / _SAMPLE)
    with named_if_broken(folder / _SAMPLE, "take a sound copy"):
        points, stored = tensors["points"], filled(_Stored, document)
        if points.ndim != 2 or points.dtype != torch.float16 or not len(points):
            raise ValueError(f"points must be float16 (M, D), got {points.dtype} {tuple(points.shape)}")
        return Sample(points.numpy().astype(np.float32), stored.far)
