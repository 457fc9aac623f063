"""New images follow the corrected ones: they go where those went that the model takes for the same cluster."""

from copy import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats
from dccm.corrections.change import MARKS
from dccm.corrections.of_run import corrected
from dccm.corrections.state import State
from dccm.errors import require
from dccm.runs.contents import NO_CLUSTER
from dccm.runs.directory import RunDirectory
from dccm.runs.model import Model

_LEAST_SHARE = 0.1
"""Of the images of a cluster that must be elsewhere by now for new images to go there, too."""
_AT_ONCE = 4096

Numbers = npt.NDArray[np.int64]


class Ways(NamedTuple):
    """Where images of one cluster of the model can be by now."""

    clusters: Numbers
    centres: Floats
    """Mean direction of the images there, (M, D)."""


class Following:
    """What corrections of a run make of the clusters that its model predicts.

    Args:
        state: Where the images of the run are by now.
        predicted: What the model said of them, (N,).
        n_clusters: Of the model.
        features: Their deep features, (N, D).
    """

    def __init__(self, state: State, predicted: Numbers, n_clusters: int, features: Floats) -> None:
        self.names = dict(state.groups.names)
        self.ways = [_ways(state, predicted == cluster, cluster, features) for cluster in range(n_clusters)]
        self._taken: list[Numbers] = []

    def afresh(self) -> "Following":
        """The same for other images, none of which was looked at."""
        other = copy(self)
        other._taken = []
        return other

    def look(self, features: Floats) -> None:
        """Take in the features of the next new images, (B, D): which way they go for each cluster of the model."""
        directions = _directions(features)
        best = [way.clusters[(directions @ way.centres.T).argmax(axis=1)] for way in self.ways]
        self._taken.append(np.stack(best, axis=1))

    def clusters(self, predicted: Numbers) -> Numbers:
        """The corrected clusters of all images that were looked at, (N,)."""
        taken = np.concatenate(self._taken) if self._taken else np.empty((0, len(self.ways)), np.int64)
        now: Numbers = np.take_along_axis(taken, predicted[:, np.newaxis], axis=1)[:, 0]
        return now


def following_of(directory: RunDirectory, model: Model) -> Following | None:
    """What new images follow; None for a run that nobody corrected, or a model folder.

    Args:
        directory: The run.
        model: Its model; what the run counts and keeps must be of it.
    """
    if not directory.corrections.is_file():
        return None
    result = directory.read_result()
    assignments = directory.read_assignments(result)
    features = directory.read_embedding(result.n_images)
    found = (model.config.data.n_clusters, model.feature_size)
    require(
        (result.n_clusters, features.shape[1]) == found,
        f"{directory.path} is of {result.n_clusters} clusters and features of {features.shape[1]} numbers, and its "
        f"model of {found[0]} and {found[1]}. Take a sound copy of the run.",
    )
    state = corrected(directory, assignments, result.n_clusters)
    return Following(state, assignments.clusters, result.n_clusters, features)


def _ways(state: State, members: npt.NDArray[np.bool_], cluster: int, features: Floats) -> Ways:
    sound = members & (state.clusters != NO_CLUSTER) & (state.marks != MARKS.index("wrong"))
    found, counts = np.unique(state.clusters[sound], return_counts=True)
    kept = found[counts >= _LEAST_SHARE * max(counts.sum(), 1)]
    if len(kept) == 0:
        kept = np.array([state.groups.of_predicted(cluster)])
    if len(kept) == 1:
        return Ways(kept, np.zeros((1, features.shape[1]), np.float32))
    return Ways(kept, np.stack([_centre(features, np.flatnonzero(sound & (state.clusters == one))) for one in kept]))


def _centre(features: Floats, rows: Numbers) -> Floats:
    """Mean direction of some images, computed a few at a time."""
    total = np.zeros(features.shape[1], np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        total += _directions(np.asarray(features[rows[start : start + _AT_ONCE]])).sum(axis=0)
    centre: Floats = _directions(total[np.newaxis])[0]
    return centre


def _directions(features: Floats) -> Floats:
    directions: Floats = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    return directions
