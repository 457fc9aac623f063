"""The corrections of a run directory."""

from dccm.corrections.log import CorrectionLog
from dccm.corrections.state import State
from dccm.runs.contents import Assignments
from dccm.runs.directory import RunDirectory


def open_log(
    directory: RunDirectory, assignments: Assignments, n_clusters: int, *, read_only: bool = False
) -> CorrectionLog:
    """The log of a run directory, which is made if there is none yet."""
    checksum = directory.read_source().checksum if directory.source.is_file() else ""
    return CorrectionLog(directory.corrections, State.of_run(assignments, n_clusters), checksum, read_only=read_only)


def corrected(directory: RunDirectory, assignments: Assignments, n_clusters: int) -> State:
    """Where each image of a run is by now; a run that nobody corrected stays as it was, and no file is made."""
    if not directory.corrections.is_file():
        return State.of_run(assignments, n_clusters)
    log = open_log(directory, assignments, n_clusters, read_only=True)
    try:
        return log.replay.state
    finally:
        log.close()
