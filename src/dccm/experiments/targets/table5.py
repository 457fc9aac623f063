"""Table 5 (supplement): systems on the same network, on CIFAR-10 and CIFAR-100; their clusters and their features.

For each system and seed one run on all images, whose NMI, ACC and ARI are shown, and one on the training images alone,
whose last convolution is probed (100 classes of CIFAR-100, as in Figure 4).
"""

from collections.abc import Iterator

from dccm.experiments.paper import NAMES, SCORES, printed
from dccm.experiments.probing import PROBE, probe_values, probed_runs
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.table import Cell, Column, Table, score_cells
from dccm.experiments.targets import Need, Target

SYSTEMS = ("rotnet", "deepcluster", "dac", "dccm")
USUAL = ("cifar10", "cifar100")
TITLE = "Table 5: systems on the same network"


def needs(request: Request) -> Iterator[Need]:
    """Every system twice: for its clusters, and for its features."""
    for dataset in request.datasets_of(USUAL):
        for system in request.methods_of(SYSTEMS):
            yield from map(Need, request.over_seeds(system, dataset))
            yield from (Need(run, (PROBE,)) for run in probed_runs(request, system, dataset))


def make(request: Request, results: Results) -> Table:
    """A row for each system, four columns for each data set."""
    datasets = request.datasets_of(USUAL)
    rows = {
        NAMES[system]: [cell for dataset in datasets for cell in _cells(request, results, system, dataset)]
        for system in request.methods_of(SYSTEMS)
    }
    columns = tuple(Column(name, dataset) for dataset in datasets for name in (*map(str.upper, SCORES), "classify"))
    notes = "classify: accuracy of the probe of the last convolution on test images, which no encoder saw"
    return Table(TITLE, columns, rows, f"{request.sentence()}; {notes}")


def _cells(request: Request, results: Results, system: str, dataset: str) -> list[Cell]:
    paper = printed("table5", dataset, system)
    probed = probe_values(results, probed_runs(request, system, dataset), "conv")
    clusters = score_cells(results, request.over_seeds(system, dataset), paper)
    return [*clusters, Cell(probed, paper[3] if len(paper) > 3 else "")]


TARGET = Target(TITLE, needs, make, USUAL)
