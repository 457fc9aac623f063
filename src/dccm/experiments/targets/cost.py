"""Beyond the paper: what each system of Table 2 costs, from the same runs: time, memory, images per second."""

from collections.abc import Iterator
from statistics import fmean

from dccm.experiments.paper import NAMES
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Cell, Column, Table
from dccm.experiments.targets import Need, Target
from dccm.experiments.targets.table2 import SYSTEMS, USUAL
from dccm.runs.result import RunResult

TITLE = "Cost of each system"
_MEASURES = ("seconds", "passes", "images/s", "peak MB")


def needs(request: Request) -> Iterator[Need]:
    """The runs of Table 2."""
    for dataset in request.datasets_of(USUAL):
        for system in request.methods_of(SYSTEMS):
            yield from map(Need, request.over_seeds(system, dataset))


def make(request: Request, results: Results) -> Table:
    """A row for each system, four columns for each data set."""
    datasets = request.datasets_of(USUAL)
    rows = {
        NAMES[system]: [cell for dataset in datasets for cell in _cells(results, request.over_seeds(system, dataset))]
        for system in request.methods_of(SYSTEMS)
    }
    columns = tuple(Column(name, dataset, "none") for dataset in datasets for name in _MEASURES)
    notes = "seconds of training; images per second that gradients were taken of; largest memory of the process"
    return Table(TITLE, columns, rows, f"{request.sentence()}; {notes}")


def _cells(results: Results, runs: list[RunSpec]) -> list[Cell]:
    found = [result for result in map(results.result, runs) if result is not None]
    costs = [result.cost for result in found]
    passes = tuple(cost.passes for cost in costs if cost.passes)
    memory = tuple(cost.peak_memory_mb for cost in costs if cost.peak_memory_mb is not None)
    rates = tuple(rate for rate in map(_rate, found) if rate)
    seconds = tuple(cost.seconds for cost in costs)
    small = bool(seconds) and fmean(seconds) < 100
    return [
        Cell(seconds, decimals=int(small)),
        Cell(passes, decimals=1),
        Cell(rates, decimals=0),
        Cell(memory, decimals=0),
    ]


def _rate(result: RunResult) -> float:
    return result.cost.passes * result.n_images / max(result.cost.seconds, 1e-9)


TARGET = Target(TITLE, needs, make, USUAL, "beyond")
