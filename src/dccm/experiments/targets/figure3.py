"""Figure 3: t-SNE of the deep features at the initial, middle and final stage of DCCM, and at the final stage of DAC.

One run of each with the first seed, which keeps its features; the same random images are drawn in each picture. The
paper's colours denote "various clusters"; here they are the true classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dccm.data.images import ImageSet
from dccm.documents import check
from dccm.experiments.figure import COLUMN_WIDTH, Figure, as_label, class_colours
from dccm.experiments.followed import kept
from dccm.experiments.maps import TOOLS, flat_map
from dccm.experiments.measure import Measure, check_lengths, check_moments
from dccm.experiments.paper import NAMES
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.targets import Need, Target
from dccm.runs.directory import RunDirectory
from dccm.runs.milestones import Milestone

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

USUAL = ("cifar10",)
TITLE = "Figure 3: embedding at different stages"
POINTS = 2000
"""Images that are drawn: more would hide each other in a picture of this size."""
STAGES = ("initial", "middle", "final")
_FARTHEST = 1e6
"""No place of t-SNE is so far out."""
_LEGEND = 10
"""Classes up to which they are named."""


class Point(NamedTuple):
    """An image in one picture."""

    dataset: str
    system: str
    stage: str
    epoch: float
    x: float
    y: float
    true_class: str


def take_map(directory: RunDirectory, images: ImageSet) -> dict[str, Any]:
    """Initial, middle and final stage."""
    found = [milestone for milestone in kept(directory, images) if milestone.feature is not None]
    names = STAGES if len(found) > 2 else ("initial", "final")
    return _maps(images, dict(zip(names, (found[0], *found[1:-1][:1], found[-1]), strict=True)))


def take_final_map(directory: RunDirectory, images: ImageSet) -> dict[str, Any]:
    """Final stage alone."""
    return _maps(images, {"final": kept(directory, images)[-1]})


def _maps(images: ImageSet, stages: dict[str, Milestone]) -> dict[str, Any]:
    rows = np.sort(np.random.default_rng(0).permutation(len(images.images))[:POINTS])
    document: dict[str, Any] = {"classes": [str(label) for label in np.asarray(images.labels)[rows]], "stages": []}
    for name, milestone in stages.items():
        assert milestone.feature is not None, "The start, the middle and the end of a run have features."
        document["tool"], places = flat_map(milestone.feature[rows])
        x, y = (np.round(axis.astype(float), 3).tolist() for axis in places.T)
        document["stages"].append({"name": name, "epoch": milestone.epoch, "x": x, "y": y})
    return document


class Stage(NamedTuple):
    """Places of the images at one moment."""

    name: str
    epoch: float
    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class Maps:
    """Places of the same images at some moments."""

    classes: list[str]
    stages: list[Stage]
    tool: str

    def __post_init__(self) -> None:
        check(self.tool in TOOLS, f"tool must be {' or '.join(TOOLS)}")
        check(0 < len(self.classes) <= POINTS, f"classes must be of {POINTS:,} images at most")
        check_moments("epoch", [stage.epoch for stage in self.stages])
        names = [stage.name for stage in self.stages]
        check(len(set(names)) == len(names), "stages must have a name each")
        for stage in self.stages:
            check(stage.name in STAGES, f"name must be one of {', '.join(STAGES)}")
            check_lengths("x and y", len(self.classes), stage.x, stage.y)
            check(all(abs(place) < _FARTHEST for place in (*stage.x, *stage.y)), "x and y must be places on a map")


MEASURES = {"dccm": Measure("map", take_map, Maps), "dac": Measure("final-map", take_final_map, Maps)}


def needs(request: Request) -> Iterator[Need]:
    """Both systems with the first seed."""
    for dataset in request.datasets_of(USUAL):
        for system in request.methods_of(list(MEASURES)):
            yield Need(request.over_seeds(system, dataset)[0], (MEASURES[system],))


def make(request: Request, results: Results) -> Figure:
    """Up to four pictures for each data set, two in a row."""
    measured = {
        (dataset, system): results.measured(request.over_seeds(system, dataset)[0], measure)
        for dataset in request.datasets_of(USUAL)
        for system, measure in MEASURES.items()
        if system in request.methods_of(list(MEASURES))
    }
    points = [point for where, found in measured.items() if found for point in _points(*where, found)]
    pictures: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        pictures.setdefault(point[:3], []).append(point)
    datasets = list(dict.fromkeys(point.dataset for point in points))

    def draw(canvas: "Canvas") -> None:
        _draw(canvas, pictures, several=len(datasets) > 1)

    tools = sorted({found.tool for found in measured.values() if found})
    # It is a picture of one seed, whatever others were asked for.
    said = replace(request, seeds=request.seeds[:1]).sentence()
    notes = f"t-SNE by {', '.join(tools) or 'nothing yet'} of {POINTS:,} images at most; colours are true classes"
    lines = -(-len(pictures) // 2)
    height = COLUMN_WIDTH / 2 * max(1, lines) + 0.45
    return Figure(TITLE, f"{notes}; {said}.", Point._fields, points, draw, height)


def _points(dataset: str, system: str, found: Maps) -> Iterator[Point]:
    for stage in found.stages:
        for x, y, name in zip(stage.x, stage.y, found.classes, strict=True):
            yield Point(dataset, NAMES[system], stage.name, stage.epoch, x, y, name)


def _draw(canvas: "Canvas", pictures: dict[tuple[str, ...], list[Point]], *, several: bool) -> None:
    grid = canvas.subplots(-(-len(pictures) // 2), 2, squeeze=False).ravel()
    for axes in grid[len(pictures) :]:
        axes.set_axis_off()
    for number, (axes, ((dataset, system, stage), points)) in enumerate(zip(grid, pictures.items())):
        colours = class_colours(point.true_class for point in points)
        for name, colour in colours.items():
            own = [point for point in points if point.true_class == name]
            x, y = [point.x for point in own], [point.y for point in own]
            # Points as pixels: as curves they would make files of megabytes.
            axes.scatter(x, y, s=1.6, color=colour, linewidths=0, rasterized=True, label=as_label(name))
        where = f"{dataset}, " if several else ""
        axes.set_title(f"({chr(ord('a') + number)}) {system}, {stage}\n{where}epoch {points[0].epoch:g}")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.set_aspect("equal", adjustable="datalim")
    classes = {tuple(sorted({point.true_class for point in points})) for points in pictures.values()}
    if len(classes) == 1 and len(colours) <= _LEGEND:
        handles, names = grid[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside lower center", ncols=5, markerscale=4, handletextpad=0.1)


TARGET = Target(TITLE, needs, make, USUAL)
