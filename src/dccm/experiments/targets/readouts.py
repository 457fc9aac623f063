"""Beyond the paper: do clusters lack training, or the right reading? k-means of features, before and after training.

The runs of Table 2 whose clusters are k-means of features, and one measure of each: what k-means finds in the features
of the untrained and of the trained network, as they are, at unit length, and with each dimension's deviation brought
to 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dccm.arrays import Floats
from dccm.data.images import ImageSet
from dccm.documents import check
from dccm.evaluation.metrics import scores
from dccm.experiments.measure import Measure, check_shares
from dccm.experiments.paper import NAMES
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Cell, Column, Table
from dccm.experiments.targets import Need, Target
from dccm.grouping.readout import KMeansReadout
from dccm.runs.config import kept_config
from dccm.runs.directory import RunDirectory
from dccm.runs.fitting import new_model
from dccm.runs.model import Model

TITLE = "k-means of features before and after training"
USUAL = ("cifar10",)
SYSTEMS = ("ae", "dae", "gan", "decnn", "vae", "nat", "aae", "bigan", "dim", "rotnet", "deepcluster")
STAGES, SCALES = ("untrained", "trained"), ("as they are", "unit length", "deviation 1")


def in_scales(features: Floats) -> dict[str, Floats]:
    """The features as they are, at unit length, and with each dimension's deviation brought to 1."""
    centred = features - features.mean(axis=0)
    lengths = np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    found = (features, features / lengths, centred / np.maximum(features.std(axis=0), 1e-6))
    return dict(zip(SCALES, found, strict=True))


def take(directory: RunDirectory, image_set: ImageSet) -> dict[str, Any]:
    """ACC and NMI of k-means in each scale, for the network as it began and as it is."""
    trained = Model.load(directory.path)
    stored = directory.read_config()
    begun = stored.begun
    config = kept_config(begun.method, begun.preset, begun.dataset, stored.settings)
    models = (new_model(image_set.images, config), trained)
    return {stage: _found(model, image_set) for stage, model in zip(STAGES, models, strict=True)}


def _found(model: Model, image_set: ImageSet) -> dict[str, dict[str, float]]:
    assert image_set.labels is not None
    table = {}
    for scale, rows in in_scales(model.transform(image_set.images)).items():
        readout = KMeansReadout(model.config.data.n_clusters)
        readout.fit(rows.copy(), model.config.training.seed)
        centres = readout.centres.numpy()
        nearest = ((centres**2).sum(axis=1) - 2 * rows @ centres.T).argmin(axis=1)
        found = scores(image_set.labels, nearest)
        table[scale] = {name: found[name] for name in ("acc", "nmi")}
    return table


class Scored(NamedTuple):
    """What k-means found."""

    acc: float
    nmi: float


@dataclass(frozen=True)
class Readouts:
    """By scale, of the network as it began and as it is."""

    untrained: dict[str, Scored]
    trained: dict[str, Scored]

    def __post_init__(self) -> None:
        for stage in STAGES:
            scales: dict[str, Scored] = getattr(self, stage)
            check(set(scales) == set(SCALES), f"{stage} must be of the scales {', '.join(SCALES)}")
            check_shares(stage, (value for scored in scales.values() for value in scored))


READOUT = Measure("readouts", take, Readouts)


def needs(request: Request) -> Iterator[Need]:
    """Each system with each seed, measured."""
    for dataset in request.datasets_of(USUAL):
        for system in request.methods_of(SYSTEMS):
            yield from (Need(run, (READOUT,)) for run in request.over_seeds(system, dataset))


def make(request: Request, results: Results) -> Table:
    """Two rows for each system, two columns for each scale and data set."""
    datasets = request.datasets_of(USUAL)
    rows = {
        f"{NAMES[system]}, {stage}": [
            cell
            for dataset in datasets
            for scale in SCALES
            for cell in _cells(results, request.over_seeds(system, dataset), stage, scale)
        ]
        for system in request.methods_of(SYSTEMS)
        for stage in STAGES
    }
    columns = tuple(
        Column(name, f"{dataset}, {scale}") for dataset in datasets for scale in SCALES for name in ("ACC", "NMI")
    )
    return Table(TITLE, columns, rows, request.sentence())


def _cells(results: Results, runs: list[RunSpec], stage: str, scale: str) -> list[Cell]:
    found = [results.measured(run, READOUT) for run in runs]
    scored: list[Scored] = [getattr(one, stage)[scale] for one in found if one is not None]
    return [Cell(tuple(one.acc for one in scored)), Cell(tuple(one.nmi for one in scored))]


TARGET = Target(TITLE, needs, make, USUAL, "beyond")
