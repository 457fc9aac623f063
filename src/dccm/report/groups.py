"""The clusters that the page shows: those of the run, as people named, merged and moved them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dccm.corrections.of_run import open_log
from dccm.corrections.state import Replay
from dccm.runs.contents import NO_CLUSTER, Assignments
from dccm.runs.directory import RunDirectory

Clusters = NDArray[np.int64]


class Group(NamedTuple):
    """A cluster."""

    number: int
    """As in `assignments.csv`; `NO_CLUSTER` for the images that people took out of all."""
    name: str = ""

    @property
    def title(self) -> str:
        """What the page calls it."""
        return self.name or ("No cluster" if self.number == NO_CLUSTER else f"Cluster {self.number}")

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return "cluster-none" if self.number == NO_CLUSTER else f"cluster-{self.number}"


class Grouped(NamedTuple):
    """Where each image is."""

    clusters: Clusters
    """Place of its cluster in `groups`, (N,)."""
    groups: list[Group]
    changes: int


def grouped(directory: RunDirectory, assignments: Assignments, n_clusters: int) -> Grouped:
    """The clusters of a run, with its corrections; what was undone does not count."""
    if not directory.corrections.is_file():
        return Grouped(assignments.clusters, [Group(number) for number in range(n_clusters)], 0)
    log = open_log(directory, assignments, n_clusters, read_only=True)
    try:
        return _corrected(log.replay, assignments)
    finally:
        log.close()


def _corrected(replay: Replay, assignments: Assignments) -> Grouped:
    """Numbers of a log may be any, so clusters are counted anew. Rejected images stand under their best one."""
    state = replay.state
    left = assignments.rejected & ~state.placed
    best, of_best = np.unique(assignments.clusters, return_inverse=True)
    best = np.array([state.groups.of_predicted(number) for number in best.tolist()], dtype=np.int64)
    now = np.where(left & (state.clusters == NO_CLUSTER), best[of_best], state.clusters)
    numbers = sorted(state.groups.alive) + [NO_CLUSTER] * bool((now == NO_CLUSTER).any())
    place = {number: place for place, number in enumerate(numbers)}
    found, inverse = np.unique(now, return_inverse=True)
    clusters = np.array([place[number] for number in found.tolist()], dtype=np.int64)[inverse]
    groups = [Group(number, state.groups.names.get(number, "")) for number in numbers]
    return Grouped(clusters, groups, len(replay.effective()))
