"""Figure 6 (b): the influence of thres_2, the probability from which a pseudo-label is trained on.

One run for each threshold and each seed; at the paper's, 0.9, it is the run that the other figures look into. The paper
does not say which thresholds it drew.
"""

from collections.abc import Iterator
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from dccm.experiments.figure import BLUE, GREEN, PINK, Figure, beside_paper, by_dataset, legend_above
from dccm.experiments.paper import SCORES, printed
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL = ("cifar10",)
TITLE = "Figure 6 (b): influence of thres_2"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
CHOSEN = 0.9
"""The paper's."""
_LOOKS = {"acc": (BLUE, "o", "-"), "nmi": (GREEN, "s", "--"), "ari": (PINK, "^", "-.")}


class Score(NamedTuple):
    """A score at a threshold, mean over seeds."""

    dataset: str
    threshold: float
    score: str
    value: float
    deviation: float
    runs: int
    paper: str


def runs(request: Request, dataset: str, threshold: float) -> list[RunSpec]:
    """DCCM with a threshold, with each seed."""
    if threshold == CHOSEN:
        return request.over_seeds("dccm", dataset)
    return request.over_seeds("dccm", dataset, settings={"label_threshold": threshold})


def needs(request: Request) -> Iterator[Need]:
    """Every threshold."""
    for dataset in request.datasets_of(USUAL) if request.methods_of(["dccm"]) else []:
        for threshold in THRESHOLDS:
            yield from map(Need, runs(request, dataset, threshold))


def make(request: Request, results: Results) -> Figure:
    """A line for each score."""
    points = [point for dataset in request.datasets_of(USUAL) for point in _points(request, results, dataset)]
    datasets = list(dict.fromkeys(point.dataset for point in points))

    findings = tuple(
        f"{point.dataset}: ACC {beside_paper(point.value, point.paper)} at {point.threshold:g}"
        for point in points
        if point.score == "acc"
    )
    notes = f"The dotted line is the threshold of all other runs; {request.sentence()}."
    return Figure(TITLE, notes, Score._fields, points, by_dataset(points, _draw), 2.3 * max(1, len(datasets)), findings)


def _points(request: Request, results: Results, dataset: str) -> Iterator[Score]:
    paper = dict(zip(SCORES, printed("table2", dataset, "dccm")))
    for threshold in THRESHOLDS:
        found = [scores for run in runs(request, dataset, threshold) if (scores := results.scores(run))]
        for name in SCORES if found else ():
            values = [scores[name] for scores in found]
            spread = stdev(values) if len(values) > 1 else 0.0
            said = paper.get(name, "") if threshold == CHOSEN else ""
            yield Score(dataset, threshold, name, fmean(values), spread, len(values), said)


def _draw(axes: "Axes", points: list[Score]) -> None:
    for name, (colour, marker, line) in _LOOKS.items():
        own = [point for point in points if point.score == name]
        thresholds, values, spreads = ([point[place] for point in own] for place in (1, 3, 4))
        bars = spreads if any(spreads) else None
        axes.errorbar(
            thresholds, values, bars, color=colour, marker=marker, linestyle=line, capsize=2, label=name.upper()
        )
    axes.axvline(CHOSEN, color="black", linestyle=":", linewidth=0.9)
    axes.set_xticks(THRESHOLDS, [f"{threshold:g}" for threshold in THRESHOLDS])
    axes.set(xlabel="thres$_2$", ylabel="score", ylim=(0, None))
    legend_above(axes, 3)


TARGET = Target(TITLE, needs, make, USUAL)
