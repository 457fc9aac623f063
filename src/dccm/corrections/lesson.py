"""What a run that goes on can learn from the corrections of a run: clusters of images, and clusters that are others."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats
from dccm.corrections.change import MARKS
from dccm.corrections.of_run import open_log
from dccm.corrections.state import State, replayed
from dccm.errors import require
from dccm.runs.contents import NO_CLUSTER, Assignments
from dccm.runs.directory import RunDirectory
from dccm.runs.improved import Improved
from dccm.runs.lesson import Lesson

_AT_ONCE = 4096

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Corrected:
    """A run, and where its images are after some of the changes in its log.

    Args:
        directory: The run.
        changes: Number of the last change that counts; None: of the last that there is.
    """

    def __init__(self, directory: RunDirectory, changes: int | None = None) -> None:
        self.directory = directory
        directory.require()
        self.result = directory.read_result()
        self.assignments: Assignments = directory.read_assignments(self.result)
        _require_corrected(directory, directory.corrections.is_file())
        self.first = State.of_run(self.assignments, self.result.n_clusters)
        log = open_log(directory, self.assignments, self.result.n_clusters, read_only=True)
        try:
            self.changes = log.replay.version if changes is None else changes
            require(
                log.replay.version >= self.changes,
                f"{directory.corrections} has {log.replay.version:,} changes, and the run was begun with "
                f"{self.changes:,}. Put the log back that it was begun with, or begin anew in another output folder.",
            )
            kept = (entry for entry in log.entries() if entry.number <= self.changes)
            self.state = replayed(self.first.copy(), kept).state
        finally:
            log.close()

    @property
    def by_hand(self) -> Flags:
        """Images that a person moved, (N,)."""
        return self.state.placed | self._thrown_out

    @property
    def _thrown_out(self) -> Flags:
        thrown_out: Flags = (self.state.clusters == NO_CLUSTER) & (self.first.clusters != NO_CLUSTER)
        return thrown_out

    @property
    def marked(self) -> Flags:
        """Images that a person marked; outliers that the run itself found are not among them."""
        marked: Flags = (self.state.marks != self.first.marks) & (self.state.marks != MARKS.index(""))
        return marked

    @property
    def regrouped(self) -> Flags:
        """Images that are in another cluster because theirs was merged or split, (N,)."""
        there = (self.state.clusters != NO_CLUSTER) & (self.first.clusters != NO_CLUSTER)
        regrouped: Flags = there & (self.state.clusters != self.first.clusters) & ~self.state.placed
        return regrouped


def lesson_of(corrected: Corrected) -> Lesson:
    """What there is to learn; corrections of which nothing can be learnt are refused."""
    state, regrouped = corrected.state, corrected.regrouped
    left_out = corrected.marked | (corrected.by_hand & ~state.placed)
    by_hand = state.placed & ~left_out
    _require_corrected(corrected.directory, bool((by_hand | left_out | regrouped).any()))
    changed = set(state.clusters[regrouped].tolist()) | set(corrected.first.clusters[regrouped].tolist())
    sizes = np.bincount(state.clusters[state.clusters != NO_CLUSTER], minlength=max(state.groups.alive) + 1)
    untrained = {cluster for cluster in range(len(sizes)) if cluster >= corrected.result.n_clusters}
    untrained |= set(corrected.result.improved.gone if corrected.result.improved else ())
    there = {cluster for cluster in state.groups.alive if sizes[cluster] or cluster not in untrained}
    require(
        len(there) >= 2,
        f"The corrections of {corrected.directory.path} leave {len(there)} cluster, and training needs 2. Undo one.",
    )
    told = by_hand | (_surer_half(corrected, changed & there) & ~left_out)
    begun = sorted(untrained & there)
    said = Improved(
        improved_from=str(corrected.directory.path.resolve()),
        changes=corrected.changes,
        corrected=int((by_hand | left_out).sum()),
        labels=int(by_hand.sum()),
        left_out=int(left_out.sum()),
        regrouped=int((told & ~by_hand).sum()),
        gone=[cluster for cluster in range(len(sizes)) if cluster not in there],
        begun=begun,
    )
    centres, middle = _centres(corrected, sorted(there), ~left_out)
    others = (changed & there) | set(begun)
    near = _nearest(corrected, centres, len(sizes)) if others else sizes
    new = {cluster: centre for cluster, centre in centres.items() if cluster in others}
    return Lesson(said, np.where(told, state.clusters, -1), by_hand, left_out, near, new, middle)


def _surer_half(corrected: Corrected, clusters: Iterable[int]) -> Flags:
    """The surer half of the images of each of these clusters: a whole cluster was never looked at one by one."""
    confidences = np.nan_to_num(corrected.assignments.confidences, nan=0.0)
    surer = np.zeros(len(confidences), bool)
    for cluster in clusters:
        members = corrected.state.clusters == cluster
        surer |= members & (confidences >= np.median(confidences[members])) if members.any() else members
    return surer


def _centres(corrected: Corrected, clusters: list[int], rows: Flags) -> tuple[dict[int, Floats], Floats]:
    """Mean features of some clusters, and of all images, in pieces: the embedding is larger than memory may be."""
    features = corrected.directory.read_embedding(len(rows))
    sums = np.zeros((len(clusters) + 1, features.shape[1]))
    counts = np.zeros(len(clusters) + 1)
    for start in range(0, len(features), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        members = [rows[part] & (corrected.state.clusters[part] == cluster) for cluster in clusters]
        weights = np.stack([*members, rows[part]]).astype(np.float64)
        sums += weights @ features[part]
        counts += weights.sum(axis=1)
    *centres, middle = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
    return dict(zip(clusters, centres)), middle


def _nearest(corrected: Corrected, centres: dict[int, Floats], n_clusters: int) -> Numbers:
    """How many images are nearest to each cluster's centre, (K,): of a new cluster only a few are known."""
    features, numbers = corrected.directory.read_embedding(), np.array(list(centres))
    rows = np.stack(list(centres.values()))
    near = np.zeros(n_clusters, np.int64)
    for start in range(0, len(features), _AT_ONCE):
        part = features[start : start + _AT_ONCE]
        closest = ((rows**2).sum(axis=1) - 2 * part @ rows.T).argmin(axis=1)
        near += np.bincount(numbers[closest], minlength=n_clusters)
    return near


def _require_corrected(directory: RunDirectory, corrected: bool) -> None:
    path = directory.path
    require(
        corrected,
        f"Nobody corrected an image or a cluster of {path}, so there is nothing to learn from. Correct some with "
        f'"dccm serve {path}", or take corrections over with "dccm corrections {path} --import".',
    )
