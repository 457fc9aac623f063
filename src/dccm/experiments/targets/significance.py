"""Beyond the paper: whether DCCM is really better than each other system of Table 2, paired over seeds.

The same runs as Table 2's. A paired t-test of the ACC of DCCM and of the other system with the same seeds: p is the
chance of a difference at least as large if there were none. It needs two seeds; three to five are the least to trust.
"""

from collections.abc import Iterator
from statistics import fmean

import numpy as np

from dccm.experiments.paper import NAMES
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.table import Cell, Column, Table
from dccm.experiments.targets import Need, Target
from dccm.experiments.targets.table2 import SYSTEMS, USUAL

TITLE = "DCCM against each other system, paired over seeds"
_OWN = "dccm"


def needs(request: Request) -> Iterator[Need]:
    """The runs of Table 2."""
    for dataset in request.datasets_of(USUAL) if request.methods_of([_OWN]) else []:
        for system in request.methods_of(SYSTEMS):
            yield from map(Need, request.over_seeds(system, dataset))


def make(request: Request, results: Results) -> Table:
    """A row for each other system, two columns for each data set."""
    datasets = request.datasets_of(USUAL)
    others = [system for system in request.methods_of(SYSTEMS) if system != _OWN]
    rows = {
        NAMES[system]: [cell for dataset in datasets for cell in _compared(request, results, system, dataset)]
        for system in others
    }
    columns = tuple(Column(name, dataset, "none") for dataset in datasets for name in ("ACC ahead", "p"))
    notes = "ACC ahead: of DCCM, mean over seeds; p: paired t-test, two-sided"
    return Table(TITLE, columns, rows, f"{request.sentence()}; {notes}")


def _compared(request: Request, results: Results, system: str, dataset: str) -> list[Cell]:
    ahead = []
    for seed in request.seeds:
        own, other = (results.scores(request.spec(name, dataset, seed)).get("acc") for name in (_OWN, system))
        ahead += [] if own is None or other is None else [own - other]
    p = paired_p(ahead)
    words = "needs two seeds" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"
    return [Cell(tuple(ahead)), Cell(words=words)]


def paired_p(differences: list[float]) -> float | None:
    """Two-sided p of a paired t-test; None: there are not two different pairs to judge by."""
    from scipy import stats

    if len(differences) < 2 or np.ptp(differences) == 0:
        return None
    spread = float(np.std(differences, ddof=1)) / len(differences) ** 0.5
    return float(2 * stats.t.sf(abs(fmean(differences)) / spread, len(differences) - 1))


TARGET = Target(TITLE, needs, make, USUAL, "beyond")
