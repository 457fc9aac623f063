"""What people said of the clusters of a run, as training takes it; the next run goes on from that run's weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from dccm.arrays import Floats
from dccm.errors import require
from dccm.methods.dccm import DCCMMethod
from dccm.networks.outputs import begin_outputs, taken_over
from dccm.runs.improved import Improved
from dccm.runs.model import Model


@dataclass(frozen=True)
class Lesson:
    """What people said of the images of a run."""

    said: Improved
    """In numbers."""
    labels: npt.NDArray[np.int64]
    """The cluster of each image, (N,); -1 where nobody said."""
    by_hand: npt.NDArray[np.bool_]
    """Whether a person put the image itself there, (N,)."""
    left_out: npt.NDArray[np.bool_]
    """Whether nothing shall be learnt from it, (N,)."""
    sizes: npt.NDArray[np.int64]
    """Images that each cluster can expect, (K,)."""
    centres: Mapping[int, Floats]
    """Mean feature of each cluster that is another than the run had found, (D,)."""
    middle: Floats
    """Mean feature of all images, (D,)."""

    @property
    def n_clusters(self) -> int:
        """K, with the numbers that are gone."""
        return len(self.sizes)

    @property
    def without(self) -> str:
        """The setting of this name."""
        return ",".join(map(str, self.said.gone))


def times_drawn(model: Model, lesson: Lesson) -> npt.NDArray[np.int64]:
    """How often each image is drawn in an epoch, (N,), as the settings of a model say."""
    corrected = model.config.settings()["corrected_times"]
    assert isinstance(corrected, int)
    times = np.where(lesson.by_hand, corrected, 1)
    times[lesson.left_out] = 0
    return times


def teach(model: Model, lesson: Lesson) -> None:
    """Give a model the weights of the run that it goes on from, and what people said of the images."""
    method = model.method
    assert isinstance(method, DCCMMethod)
    parent = Model.load(Path(lesson.said.improved_from), model.config.training.device)
    require(
        parent.shape == model.shape,
        f"The model in {lesson.said.improved_from} takes images of another shape than these. Take the images it was "
        "trained on.",
    )
    _require_of_one_run(parent, model, lesson)
    method.load_state_dict(taken_over(method.state_dict(), parent.method.state_dict()))
    centres = {cluster: torch.from_numpy(centre) for cluster, centre in lesson.centres.items()}
    trained = [cluster for cluster in method.known.kept if cluster not in centres]
    begin_outputs(method.encoder, centres, torch.from_numpy(lesson.middle), trained, torch.from_numpy(lesson.sizes))
    method.known.teach(torch.from_numpy(lesson.labels))


def _require_of_one_run(parent: Model, model: Model, lesson: Lesson) -> None:
    """Refuse a run of which settings, model and embedding do not belong together; outputs may be more or fewer."""
    before, now = (dict(each.method.named_parameters()) for each in (parent, model))
    as_many = parent.config.data.n_clusters == model.config.data.n_clusters
    same = before.keys() == now.keys() and all(
        weight.shape == now[name].shape if as_many else weight.ndim == now[name].ndim for name, weight in before.items()
    )
    require(
        same,
        f"The model in {lesson.said.improved_from} is not of the network that its config.toml describes. Take a sound "
        "copy of the run.",
    )
    require(
        len(lesson.middle) == parent.feature_size and bool(np.isfinite(lesson.middle).all()),
        f"The embedding in {lesson.said.improved_from} is not of its model. Take a sound copy of the run.",
    )
