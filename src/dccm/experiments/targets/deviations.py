"""Beyond the paper: each difference between the paper and its released code, switched alone (docs/deviations.md).

One run of the preset `paper`, one for each setting that the preset `released` changes with that setting alone, and one
of `released` as a whole; all with each seed.
"""

from collections.abc import Iterator

from dccm.config import preset_settings
from dccm.experiments.paper import SCORES
from dccm.experiments.request import Request, known_data_set
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Cell, Column, Table, score_cells
from dccm.experiments.targets import Need, Target

TITLE = "Each difference between paper and released code, switched alone"
USUAL = ("cifar10",)
READINGS: tuple[tuple[str, object], ...] = (
    ("learning_rate", 1e-3), ("logit_norm", "none"), ("logit_norm", "balanced"), ("label_reduction", "sum"),
    ("saturated_pairs", "learn"), ("shallow_map", "unpooled"), ("joint_views", False), ("rmsprop_alpha", 0.9),
    ("own_pairs", False), ("zoom_axes", "apart"), ("robustness", "invariance"), ("graph_loss", "contrastive"),
)  # fmt: skip
"""Where the paper can be read in two ways, or is silent: the other reading."""


def variants(dataset: str) -> dict[str, tuple[str, dict[str, object]]]:
    """Rows of the table: preset and settings."""
    name = known_data_set(dataset)
    released, paper = (preset_settings("dccm", preset, name) for preset in ("released", "paper"))
    differs = [(key, value) for key, value in released.items() if key not in paper or paper[key] != value]
    single = {f"{key} = {value}": ("paper", {key: value}) for key, value in [*differs, *READINGS]}
    return {"paper": ("paper", {})} | single | {"released": ("released", {})}


def _runs(request: Request, dataset: str, preset: str, settings: dict[str, object]) -> list[RunSpec]:
    return request.over_seeds("dccm", dataset, preset=preset, settings=settings)


def needs(request: Request) -> Iterator[Need]:
    """All variants."""
    for dataset in request.datasets_of(USUAL) if request.methods_of(["dccm"]) else []:
        for preset, settings in variants(dataset).values():
            yield from map(Need, _runs(request, dataset, preset, settings))


def make(request: Request, results: Results) -> Table:
    """A row for each variant, three columns for each data set."""
    datasets = request.datasets_of(USUAL)
    found = {dataset: variants(dataset) for dataset in datasets}
    names = dict.fromkeys(name for rows in found.values() for name in rows)
    rows: dict[str, list[Cell]] = {
        name: [
            cell
            for dataset in datasets
            for cell in score_cells(
                results, _runs(request, dataset, *found[dataset][name]) if name in found[dataset] else []
            )
        ]
        for name in names
    }
    columns = tuple(Column(name.upper(), dataset) for dataset in datasets for name in SCORES)
    return Table(TITLE, columns, rows, request.sentence(), "variant")


TARGET = Target(TITLE, needs, make, USUAL, "beyond")
