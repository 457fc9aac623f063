"""Table 3: what each correlation adds, on CIFAR-10.

M1 learns the pseudo-graph of clean images alone; M2 that of perturbed ones too; M3 adds pseudo-labels; M4, which is
DCCM as it is, mutual information. One run for each and each seed.
"""

from collections.abc import Iterator

from dccm.experiments.paper import SCORES, printed
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Cell, Column, Table, score_cells
from dccm.experiments.targets import Need, Target

TITLE = "Table 3: ablation of the correlations"
VARIANTS: dict[str, dict[str, object]] = {
    # The first weight is no change of the paper's preset, but `fast` learns from perturbed images only.
    "M1": {"clean_weight": 1.0, "perturbed_weight": 0.0, "label_weight": 0.0, "information_weight": 0.0},
    "M2": {"label_weight": 0.0, "information_weight": 0.0},
    "M3": {"information_weight": 0.0},
    "M4": {},
}
TERMS = {"M1": "PG", "M2": "PG^", "M3": "PG^ + PL^", "M4": "PG^ + PL^ + MI"}
"""In the words of the paper; ^ marks terms of clean and perturbed images."""
USUAL = ("cifar10",)


def runs(request: Request, dataset: str, variant: str) -> list[RunSpec]:
    """The runs of a variant."""
    return request.over_seeds("dccm", dataset, settings=VARIANTS[variant])


def needs(request: Request) -> Iterator[Need]:
    """The four variants."""
    for dataset in request.datasets_of(USUAL) if request.methods_of(["dccm"]) else []:
        for variant in VARIANTS:
            yield from map(Need, runs(request, dataset, variant))


def make(request: Request, results: Results) -> Table:
    """A row for each variant, three columns for each data set."""
    datasets = request.datasets_of(USUAL)
    rows: dict[str, list[Cell]] = {
        f"{name}: {TERMS[name]}": [
            cell
            for dataset in datasets
            for cell in score_cells(results, runs(request, dataset, name), printed("table3", dataset, name))
        ]
        for name in VARIANTS
    }
    columns = tuple(Column(name.upper(), dataset) for dataset in datasets for name in SCORES)
    return Table(TITLE, columns, rows, request.sentence(), "variant")


TARGET = Target(TITLE, needs, make, USUAL)
