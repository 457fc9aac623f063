"""The clusters as corrected: the assignments of a run, and changes applied to them one after the other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.corrections.change import MARKS, Change, Entry
from dccm.errors import UserError, require
from dccm.runs.contents import NO_CLUSTER, Assignments

MOST = 100_000
"""Numbers of clusters are below: what is counted for each of them has to fit into memory."""

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """The clusters themselves."""

    alive: frozenset[int]
    """Their numbers; a cluster that was merged into another is gone."""
    names: dict[int, str]
    merged: dict[int, int]
    """Into which cluster each of those that are gone went."""

    def of_predicted(self, cluster: int) -> int:
        """The cluster that images of a cluster of the model belong to by now."""
        while cluster in self.merged:
            cluster = self.merged[cluster]
        return cluster


@dataclass
class State:
    """Where each image is, and what was said of it."""

    clusters: npt.NDArray[np.int64]
    """(N,); `NO_CLUSTER` for those that the run rejected."""
    marks: npt.NDArray[np.int8]
    """Place in `MARKS`, (N,)."""
    placed: npt.NDArray[np.bool_]
    """Whether a person put the image where it is, (N,)."""
    groups: Groups

    @classmethod
    def of_run(cls, assignments: Assignments, n_clusters: int) -> "State":
        """What a run found, before anybody changed anything."""
        clusters = np.where(assignments.rejected, NO_CLUSTER, assignments.clusters)
        marks = (assignments.outliers * MARKS.index("outlier")).astype(np.int8)
        return cls(clusters, marks, np.zeros(len(clusters), bool), Groups(frozenset(range(n_clusters)), {}, {}))

    def copy(self) -> "State":
        """The same, to be changed."""
        return State(self.clusters.copy(), self.marks.copy(), self.placed.copy(), self.groups)


@dataclass(frozen=True)
class _Before:
    """What a change replaced."""

    entry: Entry
    rows: Rows
    clusters: npt.NDArray[np.int64]
    marks: npt.NDArray[np.int8]
    placed: npt.NDArray[np.bool_]
    groups: Groups


class Replay:
    """Applies the entries of a log in their order; each is checked first.

    Args:
        state: To begin from; it is changed in place.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.version = 0
        self.highest = max(state.groups.alive, default=-1)
        """Highest number that a cluster ever had, also one that was undone: numbers are not used again."""
        self._done: list[_Before] = []
        self._undone: list[Entry] = []

    @property
    def undoable(self) -> Entry | None:
        """The change that an undo takes back."""
        return self._done[-1].entry if self._done else None

    @property
    def redoable(self) -> Entry | None:
        """The change that a redo makes again."""
        return self._undone[-1] if self._undone else None

    def effective(self) -> list[Entry]:
        """The changes that count, without those that were undone."""
        return [before.entry for before in self._done]

    def check(self, change: Change) -> None:
        """Refuse a change that does not fit what is there now."""
        if change.kind in ("undo", "redo"):
            _require_next(change, self.undoable if change.kind == "undo" else self.redoable)
        else:
            _check(change, self.state)

    def take(self, entry: Entry) -> None:
        """Apply the next entry of the log."""
        self.check(entry.change)
        if entry.change.kind == "undo":
            self._undo()
        elif entry.change.kind == "redo":
            self._do(self._undone.pop())
        else:
            self._undone.clear()
            self._do(entry)
        self.version = entry.number

    def _do(self, entry: Entry) -> None:
        state, change = self.state, entry.change
        rows = _rows(change, state)
        self._done.append(
            _Before(entry, rows, state.clusters[rows], state.marks[rows], state.placed[rows], state.groups)
        )
        _APPLY[change.kind](state, change, rows)
        self.highest = max(self.highest, change.cluster, *(number for number, _ in change.parts))

    def _undo(self) -> None:
        before, state = self._done.pop(), self.state
        state.clusters[before.rows] = before.clusters
        state.marks[before.rows] = before.marks
        state.placed[before.rows] = before.placed
        state.groups = before.groups
        self._undone.append(before.entry)


def _require_next(change: Change, entry: Entry | None) -> None:
    require(entry is not None, f"There is nothing to {change.kind}.")
    assert entry is not None
    require(
        entry.number == change.change,
        f"Change {change.change} is not the one to {change.kind} now: somebody else made a change. Look at it first.",
    )


def _check(change: Change, state: State) -> None:
    known = state.groups.alive
    for rows in (change.images, *(images for _, images in change.parts)):
        outside = [row for row in (min(rows), max(rows)) if not 0 <= row < len(state.clusters)] if rows else []
        require(not outside, f"There is no image {outside[:1]}: the run has {len(state.clusters):,}, numbered from 0.")
    if change.kind in ("move", "mark"):
        require(len(change.images) > 0, f"A change of the kind {change.kind} must name images. Select some.")
    _CHECK.get(change.kind, _nothing)(change, state)
    new = [number for number, _ in change.parts] + ([change.cluster] if change.kind == "create" else [])
    _require_new(new, state)
    wanted = {"move": [change.cluster], "split": [change.cluster], "rename": [change.cluster]}
    for number in wanted.get(change.kind, list(change.clusters)):
        if number != NO_CLUSTER or change.kind != "move":
            require(number in known, f"There is no cluster {number} any more. Choose one of those that are there.")


def _require_new(numbers: Sequence[int], state: State) -> None:
    for number in numbers:
        taken = number < 0 or number in state.groups.alive or number in state.groups.merged
        require(not taken, f"A new cluster cannot have the number {number}: it is taken. Take a higher one.")
        high = f"No new cluster can have the number {number}: they end at {MOST - 1}. Take a lower one."
        require(number < MOST, high)
    require(len(set(numbers)) == len(numbers), "New clusters must have different numbers.")


def _check_merge(change: Change, _: State) -> None:
    require(len(set(change.clusters)) > 1, "A merge must name at least two clusters. Select another one.")
    require(
        change.cluster in change.clusters,
        f"A merge must go into one of the merged clusters, got {change.cluster}. Choose one of them.",
    )


def _check_split(change: Change, state: State) -> None:
    chosen = [row for _, images in change.parts for row in images]
    require(len(chosen) > 0 and all(images for _, images in change.parts), "Each part of a split must hold images.")
    inside = bool((state.clusters[np.array(chosen)] == change.cluster).all())
    require(
        inside and len(set(chosen)) == len(chosen),
        f"The parts of a split must be different images of cluster {change.cluster}. Look again, and split anew.",
    )


def _nothing(*_: object) -> None:
    """There is nothing more to check."""


def _rows(change: Change, state: State) -> Rows:
    """The images that a change touches."""
    if change.kind == "merge":
        return np.flatnonzero(np.isin(state.clusters, change.clusters))
    images = [row for _, part in change.parts for row in part] if change.kind == "split" else change.images
    return np.unique(np.array(images, dtype=np.int64))


def _move(state: State, change: Change, rows: Rows) -> None:
    state.clusters[rows] = change.cluster
    state.placed[rows] = change.cluster != NO_CLUSTER
    wrong = rows[state.marks[rows] == MARKS.index("wrong")]
    state.marks[wrong] = 0  # It was wrong where it was before.


def _merge(state: State, change: Change, rows: Rows) -> None:
    groups, gone = state.groups, set(change.clusters) - {change.cluster}
    state.clusters[rows] = change.cluster
    kept = {number: name for number, name in groups.names.items() if number not in gone}
    named = next((groups.names[number] for number in change.clusters if number in groups.names), "")
    kept |= {change.cluster: named} if named and change.cluster not in kept else {}
    state.groups = Groups(groups.alive - gone, kept, groups.merged | dict.fromkeys(gone, change.cluster))


def _split(state: State, change: Change, _: Rows) -> None:
    for number, images in change.parts:
        state.clusters[np.array(images)] = number
    state.groups = replace(state.groups, alive=state.groups.alive | {number for number, _ in change.parts})


def _create(state: State, change: Change, rows: Rows) -> None:
    state.groups = replace(state.groups, alive=state.groups.alive | {change.cluster})
    _rename(state, change, rows)
    _move(state, change, rows)


def _rename(state: State, change: Change, _: Rows) -> None:
    names = {number: name for number, name in state.groups.names.items() if number != change.cluster}
    names |= {change.cluster: change.name} if change.name else {}
    state.groups = replace(state.groups, names=names)


def _mark(state: State, change: Change, rows: Rows) -> None:
    state.marks[rows] = MARKS.index(change.mark)


_APPLY: dict[str, Any] = {
    "move": _move,
    "merge": _merge,
    "split": _split,
    "create": _create,
    "rename": _rename,
    "mark": _mark,
}
_CHECK: dict[str, Any] = {"merge": _check_merge, "split": _check_split}


def replayed(state: State, entries: Iterable[Entry]) -> Replay:
    """The whole log applied at once; `UserError` names the entry that does not fit."""
    replay = Replay(state)
    for entry in entries:
        try:
            replay.take(entry)
        except UserError as error:
            raise UserError(f"Change {entry.number} of the log does not fit the ones before it: {error}") from error
    return replay
