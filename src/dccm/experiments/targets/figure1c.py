"""Figure 1 (c): ACC against epochs, DCCM and DAC.

One run of each with each seed, which keeps its predictions at equal steps; they are scored against the true classes
when the run is over.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dccm.data.images import ImageSet
from dccm.evaluation.metrics import accuracy, nmi
from dccm.experiments.figure import BLUE, GREY, RED, Figure, beside_paper, legend_above, panels
from dccm.experiments.followed import kept
from dccm.experiments.measure import Measure, check_lengths, check_moments, check_shares
from dccm.experiments.paper import NAMES, printed
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.targets import Need, Target
from dccm.runs.directory import RunDirectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SYSTEMS = ("dccm", "dac")
USUAL = ("cifar10",)
TITLE = "Figure 1 (c): accuracy of the clusters against epochs"
_SCORES = ("acc", "nmi")
_LOOKS = {"DCCM": (BLUE, "-", "o"), "DAC": (RED, "--", "s")}


class Point(NamedTuple):
    """A system at one moment, mean over seeds."""

    dataset: str
    system: str
    epoch: float
    acc: float
    deviation: float
    nmi: float
    runs: int
    paper_last_acc: str


def take_curve(directory: RunDirectory, images: ImageSet) -> dict[str, Any]:
    """ACC and NMI of all images whenever predictions were kept."""
    found, labels = kept(directory, images), np.asarray(images.labels)
    clusters = [milestone.prediction.argmax(axis=1) for milestone in found]
    return {
        "epoch": [milestone.epoch for milestone in found],
        "acc": [accuracy(labels, one) for one in clusters],
        "nmi": [nmi(labels, one) for one in clusters],
    }


@dataclass(frozen=True)
class Curve:
    """The scores at each moment."""

    epoch: list[float]
    acc: list[float]
    nmi: list[float]

    def __post_init__(self) -> None:
        check_moments("epoch", self.epoch)
        check_lengths("acc and nmi", len(self.epoch), self.acc, self.nmi)
        check_shares("acc and nmi", [*self.acc, *self.nmi])


CURVE = Measure("curve", take_curve, Curve)


def needs(request: Request) -> Iterator[Need]:
    """Both systems with every seed."""
    for dataset in request.datasets_of(USUAL):
        for system in request.methods_of(SYSTEMS):
            yield from (Need(run, (CURVE,)) for run in request.over_seeds(system, dataset))


def make(request: Request, results: Results) -> Figure:
    """A curve for each system, the mean of its seeds."""
    curves = {
        (dataset, system): list(_curve(request, results, dataset, system))
        for dataset in request.datasets_of(USUAL)
        for system in request.methods_of(SYSTEMS)
    }
    points = [point for curve in curves.values() for point in curve]
    datasets = list(dict.fromkeys(point.dataset for point in points))

    def draw(canvas: "Canvas") -> None:
        for dataset, axes in panels(canvas, datasets):
            _draw(axes, [curve for (name, _), curve in curves.items() if name == dataset and curve])

    findings = tuple(
        f"{last.system} on {last.dataset}: ACC {beside_paper(last.acc, last.paper_last_acc)}, epoch {last.epoch:g}"
        for last in (curve[-1] for curve in curves.values() if curve)
    )
    notes = f"All images, at {max(map(len, curves.values()), default=0)} moments of a run; {request.sentence()}."
    return Figure(TITLE, notes, Point._fields, points, draw, 2.3 * max(1, len(datasets)), findings)


def _curve(request: Request, results: Results, dataset: str, system: str) -> Iterator[Point]:
    measured = [results.measured(run, CURVE) for run in request.over_seeds(system, dataset)]
    found = [curve for curve in measured if curve]
    paper = (printed("table2", dataset, system) or ["", ""])[1]
    epochs = found[0].epoch if found else []
    # Runs limited by minutes keep theirs at other epochs, so curves are read between their points.
    accs, mutuals = ([np.interp(epochs, curve.epoch, getattr(curve, name)) for curve in found] for name in _SCORES)
    for place, epoch in enumerate(epochs):
        acc, mutual = ([float(values[place]) for values in many] for many in (accs, mutuals))
        deviation = stdev(acc) if len(acc) > 1 else 0.0
        yield Point(dataset, NAMES[system], epoch, fmean(acc), deviation, fmean(mutual), len(acc), paper)


def _draw(axes: "Axes", curves: list[list[Point]]) -> None:
    for curve in curves:
        colour, line, marker = _LOOKS[curve[0].system]
        epochs, mean, spread = (np.array([point[place] for point in curve]) for place in (2, 3, 4))
        axes.plot(epochs, mean, line, color=colour, marker=marker, label=curve[0].system, clip_on=False, zorder=3)
        axes.fill_between(epochs, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
        if curve[0].paper_last_acc:
            axes.axhline(float(curve[0].paper_last_acc), color=colour, linestyle=":", linewidth=0.9)
    if any(curve[0].paper_last_acc for curve in curves):
        axes.plot([], [], ":", color=GREY, linewidth=0.9, label="paper, last epoch")
    axes.set(xlabel="epochs", ylabel="ACC", xlim=(0, None), ylim=(0, None))
    axes.locator_params(axis="x", integer=True)
    legend_above(axes, 3)


TARGET = Target(TITLE, needs, make, USUAL)
