"""Beyond the paper: how much DCCM depends on alpha, beta, thres_1, positions of the critic and sizes of batches.

One run for each value of each setting, all others as in the preset `paper`, with each seed.
"""

from collections.abc import Iterator

from dccm.experiments.paper import SCORES
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Column, Table, score_cells
from dccm.experiments.targets import Need, Target

TITLE = "Sensitivity of DCCM to its settings"
USUAL = ("cifar10",)
VALUES: dict[str, tuple[object, ...]] = {
    "label_weight": (1.0, 5.0, 10.0),
    "information_weight": (0.01, 0.1, 1.0),
    "graph_threshold": (0.9, 0.95, 0.99),
    "critic_positions": (1, 4, 16, "all"),
    "batch_size": (256, 1000, 4000),
    "mini_batch": (32, 64, 128),
}
SYMBOLS = {"label_weight": "alpha", "information_weight": "beta", "graph_threshold": "thres_1"}


def _runs(request: Request, dataset: str, name: str, value: object) -> list[RunSpec]:
    return request.over_seeds("dccm", dataset, settings={name: value})


def needs(request: Request) -> Iterator[Need]:
    """One setting changed at a time."""
    for dataset in request.datasets_of(USUAL) if request.methods_of(["dccm"]) else []:
        for name, values in VALUES.items():
            for value in values:
                yield from map(Need, _runs(request, dataset, name, value))


def make(request: Request, results: Results) -> Table:
    """A row for each value, three columns for each data set."""
    datasets = request.datasets_of(USUAL)
    rows = {
        f"{SYMBOLS.get(name, name)} = {value}": [
            cell for dataset in datasets for cell in score_cells(results, _runs(request, dataset, name, value))
        ]
        for name, values in VALUES.items()
        for value in values
    }
    columns = tuple(Column(name.upper(), dataset) for dataset in datasets for name in SCORES)
    return Table(TITLE, columns, rows, request.sentence(), "setting")


TARGET = Target(TITLE, needs, make, USUAL, "beyond")
