"""Table 2: clusters of the 13 systems on the six data sets, all images of both splits together.

One run for each system, data set and seed; the table is their NMI, ACC and ARI.
"""

from collections.abc import Iterator

from dccm.experiments.paper import NAMES, SCORES, printed
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.table import Cell, Column, Table, score_cells
from dccm.experiments.targets import Need, Target

SYSTEMS = (
    "kmeans", "spectral", "agglomerative", "nmf", "ae", "dae", "gan", "decnn", "vae", "jule", "dec", "dac", "dccm",
)  # fmt: skip
USUAL = ("cifar10", "cifar100", "stl10", "imagenet10", "imagenet_dog15", "tiny_imagenet")
TITLE = "Table 2: clustering performance of all systems"


def needs(request: Request) -> Iterator[Need]:
    """Every system on every data set with every seed."""
    for dataset in request.datasets_of(USUAL):
        for system in request.methods_of(SYSTEMS):
            yield from map(Need, request.over_seeds(system, dataset))


def make(request: Request, results: Results) -> Table:
    """A row for each system, three columns for each data set."""
    datasets = request.datasets_of(USUAL)
    rows: dict[str, list[Cell]] = {}
    for system in request.methods_of(SYSTEMS):
        rows[NAMES[system]] = [
            cell
            for dataset in datasets
            for cell in score_cells(results, request.over_seeds(system, dataset), printed("table2", dataset, system))
        ]
    columns = tuple(Column(name.upper(), dataset) for dataset in datasets for name in SCORES)
    return Table(TITLE, columns, rows, request.sentence())


TARGET = Target(TITLE, needs, make, USUAL)
