"""Table 6 (supplement): the four strategies that take pairs from the pseudo-graph, by a probe of the deep feature.

As the supplement describes it: a model that learnt without mutual information (M3 of Table 3) stays as it is, and a new
one learns from scratch from the mutual information of pairs alone, which are taken from the graph that the first one
sees. Both learn from training images. "n positive pairs and n negative pairs": samples are no pairs with themselves.
"""

from collections.abc import Iterator

from dccm.experiments.paper import printed
from dccm.experiments.probing import PROBE, probe_values
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Cell, Column, Table
from dccm.experiments.targets import Need, Target

USUAL = ("cifar10",)
TITLE = "Table 6: pair-sampling strategies"
STRATEGIES = {
    "V1": ("nearest+random", "nearest positive, random negative"),
    "V2": ("nearest+farthest", "nearest positive, farthest negative"),
    "V3": ("random+random", "random positive, random negative"),
    "V4": ("top_n+random", "top-n positive, random negative"),
}
_ALONE = {"clean_weight": 0.0, "perturbed_weight": 0.0, "own_pairs": False, "starts": 1}
"""Of the mutual information; other presets have several starts, which could not be told apart."""


def runs(request: Request, dataset: str, strategy: str) -> list[RunSpec]:
    """The new models of a strategy, one for each seed; each comes after a fixed one of its own seed."""
    found = []
    for seed in request.seeds:
        fixed = request.spec("dccm", dataset, seed, settings={"information_weight": 0.0}, split="train")
        settings = _ALONE | {"pairs": STRATEGIES[strategy][0]}
        found.append(request.spec("dccm", dataset, seed, settings=settings, split="train", after={"mined_by": fixed}))
    return found


def needs(request: Request) -> Iterator[Need]:
    """The fixed model, and the four strategies with it."""
    for dataset in request.datasets_of(USUAL) if request.methods_of(["dccm"]) else []:
        for strategy in STRATEGIES:
            yield from (Need(run, (PROBE,)) for run in runs(request, dataset, strategy))


def make(request: Request, results: Results) -> Table:
    """A row for each strategy, a column for each data set."""
    datasets = request.datasets_of(USUAL)
    rows = {
        f"{name}: {words}": [_cell(request, results, dataset, name) for dataset in datasets]
        for name, (_, words) in STRATEGIES.items()
    }
    columns = tuple(Column("classify (Y)", dataset) for dataset in datasets)
    notes = "accuracy of the probe of the deep feature on test images, which no model saw"
    return Table(TITLE, columns, rows, f"{request.sentence()}; {notes}", "pairs")


def _cell(request: Request, results: Results, dataset: str, strategy: str) -> Cell:
    paper = printed("table6", dataset, strategy)
    return Cell(probe_values(results, runs(request, dataset, strategy), "y"), paper[0] if paper else "")


TARGET = Target(TITLE, needs, make, USUAL)
