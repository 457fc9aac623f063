"""What people said of a run is carried over into the log of the run that was improved by it.

Names and numbers keep their meaning, images stay where people put them, and the next improvement learns from all of it.
"""

from collections.abc import Iterator

import numpy as np

from dccm.corrections.change import MARKS, Change
from dccm.corrections.lesson import Corrected
from dccm.corrections.of_run import open_log
from dccm.runs.contents import NO_CLUSTER
from dccm.runs.directory import RunDirectory

_WHO = "improve"


def carry_over(corrected: Corrected, improved: RunDirectory) -> None:
    """Begin the log of an improved run; one that is begun already stays as it is."""
    result = improved.read_result()
    changes = list(carried(corrected, result.n_clusters))
    log = open_log(improved, improved.read_assignments(result), result.n_clusters)
    try:
        if log.replay.version == 0 and changes:
            log.write([(_WHO, change) for change in changes])
    finally:
        log.close()


def carried(corrected: Corrected, n_clusters: int) -> Iterator[Change]:
    """The changes that lead to the same clusters, names and marks.

    Args:
        corrected: The run that was improved.
        n_clusters: Of the one that goes on, in which all numbers are there at first.
    """
    state, groups = corrected.state, corrected.state.groups
    for gone in sorted(set(range(n_clusters)) - groups.alive):
        into = groups.of_predicted(gone) if gone in groups.merged else min(groups.alive)
        yield Change(kind="merge", clusters=(into, gone), cluster=into)
    for cluster, name in sorted(groups.names.items()):
        yield Change(kind="rename", cluster=cluster, name=name)
    for cluster in sorted(groups.alive | {NO_CLUSTER}):
        rows = np.flatnonzero(corrected.by_hand & (state.clusters == cluster))
        if len(rows):
            yield Change(kind="move", images=rows.tolist(), cluster=cluster)
    for mark in MARKS[1:]:
        rows = np.flatnonzero(corrected.marked & (state.marks == MARKS.index(mark)))
        if len(rows):
            yield Change(kind="mark", images=rows.tolist(), mark=mark)
