"""Small states and logs for the tests of corrections."""

from pathlib import Path

import numpy as np

from dccm.corrections.log import CorrectionLog
from dccm.corrections.state import State
from dccm.runs.contents import Assignments


def assignments_of(clusters: list[int]) -> Assignments:
    count = len(clusters)
    nothing = np.zeros(count, bool)
    paths = [f"{number:03}.png" for number in range(count)]
    return Assignments(paths, np.array(clusters), np.linspace(0, 1, count), nothing, nothing.copy())


def state_of(*clusters: int) -> State:
    return State.of_run(assignments_of(list(clusters)), max(clusters) + 1)


def log_at(path: Path, *clusters: int, checksum: str = "") -> CorrectionLog:
    return CorrectionLog(path, state_of(*clusters), checksum)
