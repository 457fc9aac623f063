"""Figure 5: BCubed precision and recall of the pseudo-graph over thresholds, at several epochs of DCCM.

One run with each seed, which keeps its predictions. The graph is that of large batches, as in training: random parts
of all images, the same at each epoch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dccm.data.images import ImageSet
from dccm.documents import check
from dccm.evaluation.metrics import graph_bcubed
from dccm.experiments.figure import COLOURS, LINES, Figure, by_dataset, legend_above
from dccm.experiments.followed import kept
from dccm.experiments.measure import Measure, check_lengths, check_moments, check_shares
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.targets import Need, Target
from dccm.runs.directory import RunDirectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL = ("cifar10",)
TITLE = "Figure 5: BCubed precision and recall of the pseudo-graph"
CHOSEN = 0.95
"""The paper's thres_1."""
THRESHOLDS = (*(round(0.1 * step, 1) for step in range(10)), 0.93, CHOSEN, 0.97, 0.98, 0.99, 0.995, 0.999, 0.9999)
CURVES = 5
"""Epochs that are drawn, from the first to the last."""
_BATCHES = 4
"""Large batches whose graphs are scored."""


class Point(NamedTuple):
    """The graph at an epoch and a threshold, mean over seeds."""

    dataset: str
    epoch: float
    threshold: float
    precision: float
    recall: float
    runs: int


def take_graphs(directory: RunDirectory, images: ImageSet) -> dict[str, Any]:
    """Precision and recall at each threshold, of a few epochs."""
    found, labels = kept(directory, images), np.asarray(images.labels)
    chosen = sorted({round(place) for place in np.linspace(0, len(found) - 1, CURVES)})
    size = int(str(directory.read_config().settings["batch_size"]))
    curves = [_curve(found[place].prediction, labels, size) for place in chosen]
    return {
        "epoch": [found[place].epoch for place in chosen],
        "precision": [[point[0] for point in curve] for curve in curves],
        "recall": [[point[1] for point in curve] for curve in curves],
    }


def _curve(prediction: "np.ndarray[Any, Any]", labels: "np.ndarray[Any, Any]", size: int) -> list[list[float]]:
    """Precision and recall at each threshold, (T, 2), mean over large batches."""
    parts = np.array_split(np.random.default_rng(0).permutation(len(labels)), max(1, round(len(labels) / size)))
    direction = prediction / np.linalg.norm(prediction, axis=1, keepdims=True)
    found = []
    for rows in parts[:_BATCHES]:
        cosine = direction[rows] @ direction[rows].T
        found.append([graph_bcubed(labels[rows], cosine >= threshold) for threshold in THRESHOLDS])
    means: list[list[float]] = np.mean(found, axis=0).tolist()
    return means


@dataclass(frozen=True)
class Graphs:
    """Precision and recall at each threshold, of each epoch."""

    epoch: list[float]
    precision: list[list[float]]
    recall: list[list[float]]

    def __post_init__(self) -> None:
        check_moments("epoch", self.epoch)
        check(len(self.epoch) <= CURVES, f"epoch must be {CURVES} at most, got {len(self.epoch):,}")
        check_lengths("precision and recall", len(self.epoch), self.precision, self.recall)
        check_lengths("each precision and recall", len(THRESHOLDS), *self.precision, *self.recall)
        for values in (*self.precision, *self.recall):
            check_shares("precision and recall", values)


GRAPHS = Measure("graphs", take_graphs, Graphs)


def needs(request: Request) -> Iterator[Need]:
    """DCCM with every seed."""
    for dataset in request.datasets_of(USUAL) if request.methods_of(["dccm"]) else []:
        yield from (Need(run, (GRAPHS,)) for run in request.over_seeds("dccm", dataset))


def make(request: Request, results: Results) -> Figure:
    """A curve for each epoch."""
    points = [point for dataset in request.datasets_of(USUAL) for point in _points(request, results, dataset)]
    datasets = list(dict.fromkeys(point.dataset for point in points))

    findings = tuple(
        f"{point.dataset}, epoch {point.epoch:g}, threshold {CHOSEN:g}: precision {point.precision:.3f}, "
        f"recall {point.recall:.3f}"
        for point in points
        if point.threshold == CHOSEN
    )
    notes = f"Circles: the threshold of training, {CHOSEN:g}; {request.sentence()}."
    return Figure(TITLE, notes, Point._fields, points, by_dataset(points, _draw), 2.9 * max(1, len(datasets)), findings)


def _points(request: Request, results: Results, dataset: str) -> Iterator[Point]:
    measured = [results.measured(run, GRAPHS) for run in request.over_seeds("dccm", dataset)]
    found = [one for one in measured if one]
    for place, epoch in enumerate(found[0].epoch if found else ()):
        there = [one for one in found if place < len(one.epoch)]
        for number, threshold in enumerate(THRESHOLDS):
            precision = fmean(one.precision[place][number] for one in there)
            recall = fmean(one.recall[place][number] for one in there)
            yield Point(dataset, epoch, threshold, precision, recall, len(there))


def _draw(axes: "Axes", points: list[Point]) -> None:
    for number, epoch in enumerate(dict.fromkeys(point.epoch for point in points)):
        curve = [point for point in points if point.epoch == epoch]
        colour = COLOURS[number % len(COLOURS)]
        recall, precision = ([point[place] for point in curve] for place in (4, 3))
        axes.plot(recall, precision, LINES[number % len(LINES)], color=colour, label=f"epoch {epoch:g}")
        (chosen,) = (point for point in curve if point.threshold == CHOSEN)
        axes.plot(chosen.recall, chosen.precision, "o", color=colour, markersize=5, markeredgecolor="white")
    axes.set(xlabel="BCubed recall", ylabel="BCubed precision", xlim=(0, 1.02), ylim=(0, 1.02))
    legend_above(axes, 3)


TARGET = Target(TITLE, needs, make, USUAL)
