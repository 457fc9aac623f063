"""Figure 6 (a): how large the largest probability of a prediction is, at the start and at the end of DCCM.

One run with each seed, which keeps its predictions; the share of all images in each of the paper's nine intervals.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dccm.data.images import ImageSet
from dccm.experiments.figure import BLUE, ORANGE, Figure, by_dataset, legend_above
from dccm.experiments.followed import kept
from dccm.experiments.measure import Measure, check_lengths, check_shares
from dccm.experiments.paper import numbers
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.targets import Need, Target
from dccm.runs.directory import RunDirectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL = ("cifar10",)
TITLE = "Figure 6 (a): distribution of the largest probability"
EDGES = tuple(round(0.1 * step, 1) for step in range(1, 11))
"""Of the nine intervals. With more than ten clusters the largest can be below 0.1: it counts to the first interval."""
STAGES = ("initial", "final")
_LOOKS = {"initial": (ORANGE, "////"), "final": (BLUE, "")}


class Share(NamedTuple):
    """The share of images in an interval, mean over seeds."""

    dataset: str
    stage: str
    low: float
    high: float
    share: float
    runs: int


def take_largest(directory: RunDirectory, images: ImageSet) -> dict[str, Any]:
    """The share of images in each interval, at the start and at the end."""
    found = kept(directory, images)
    largest = (milestone.prediction.max(axis=1) for milestone in (found[0], found[-1]))
    return {stage: shares(values) for stage, values in zip(STAGES, largest, strict=True)}


def shares(probability: "np.ndarray[Any, Any]") -> list[float]:
    """The share of numbers in each interval; a border belongs to the upper one, and 1 to the last."""
    place = np.digitize(probability, EDGES[1:-1])
    return [float(share) for share in np.bincount(place, minlength=len(EDGES) - 1) / len(probability)]


@dataclass(frozen=True)
class Largest:
    """The share of images in each interval, at each stage."""

    initial: list[float]
    final: list[float]

    def __post_init__(self) -> None:
        check_lengths("initial and final", len(EDGES) - 1, self.initial, self.final)
        check_shares("initial and final", [*self.initial, *self.final, sum(self.initial), sum(self.final)])


LARGEST = Measure("largest", take_largest, Largest)


def needs(request: Request) -> Iterator[Need]:
    """DCCM with every seed."""
    for dataset in request.datasets_of(USUAL) if request.methods_of(["dccm"]) else []:
        yield from (Need(run, (LARGEST,)) for run in request.over_seeds("dccm", dataset))


def make(request: Request, results: Results) -> Figure:
    """Two bars for each interval."""
    bars = [bar for dataset in request.datasets_of(USUAL) for bar in _bars(request, results, dataset)]
    datasets = list(dict.fromkeys(bar.dataset for bar in bars))

    findings = tuple(finding for dataset in datasets for finding in _findings(bars, dataset))
    notes = f"Share of all images before the first and after the last epoch; {request.sentence()}."
    return Figure(TITLE, notes, Share._fields, bars, by_dataset(bars, _draw), 2.3 * max(1, len(datasets)), findings)


def _bars(request: Request, results: Results, dataset: str) -> Iterator[Share]:
    measured = [results.measured(run, LARGEST) for run in request.over_seeds("dccm", dataset)]
    found = [one for one in measured if one]
    for stage in STAGES if found else ():
        for place, (low, high) in enumerate(pairwise(EDGES)):
            yield Share(dataset, stage, low, high, fmean(getattr(one, stage)[place] for one in found), len(found))


def _findings(bars: list[Share], dataset: str) -> Iterator[str]:
    """The two shares of which the paper speaks."""
    paper = numbers()["figure6a"] if dataset in USUAL else {}
    for stage, above, key in (("initial", 0.7, "initial_above_0_7"), ("final", 0.9, "final_above_0_9")):
        at = {
            name: sum(bar.share for bar in bars if bar[:2] == (dataset, name) and bar.low >= above) for name in STAGES
        }
        said = f" (paper: {paper[key]})" if paper else ""
        other = STAGES[1 - STAGES.index(stage)]
        yield f"{dataset}, share above {above:g}: {stage} {at[stage]:.3f}{said}, {other} {at[other]:.3f}"


def _draw(axes: "Axes", bars: list[Share]) -> None:
    for number, (stage, (colour, hatch)) in enumerate(_LOOKS.items()):
        heights = [bar.share for bar in bars if bar.stage == stage]
        places = np.arange(len(heights)) + 0.4 * (number - 0.5)
        looks: dict[str, Any] = {"color": colour, "edgecolor": "white", "linewidth": 0.4, "hatch": hatch}
        axes.bar(places, heights, 0.4, label=f"{stage} stage", **looks)
    axes.set_xticks(np.arange(len(EDGES)) - 0.5, [f"{edge:.1f}" for edge in EDGES])
    axes.grid(False, axis="x")
    axes.set(xlabel="largest probability", ylabel="share of images", ylim=(0, None))
    legend_above(axes, 2)


TARGET = Target(TITLE, needs, make, USUAL)
