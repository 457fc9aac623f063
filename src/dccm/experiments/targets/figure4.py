"""Figure 4: accuracy of the probe on what systems learn without labels, CIFAR-10 and CIFAR-100 with all 100 classes.

One run on the training images alone for each system, data set and seed, whose last convolution (Conv) and deep feature
(Y) are probed on the test images. Those of DCCM are also in Table 5.
"""

from collections.abc import Iterator
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dccm.experiments.figure import BLUE, ORANGE, Figure, beside_paper, by_dataset, legend_above
from dccm.experiments.paper import NAMES, printed
from dccm.experiments.probing import PROBE, probe_values, probed_runs
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.targets import Need, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SYSTEMS = ("vae", "aae", "bigan", "nat", "dim", "dccm")
USUAL = ("cifar10", "cifar100")
TITLE = "Figure 4: accuracy of the probe"
LAYERS = ("conv", "y")
_LOOKS = {"conv": ("Conv", BLUE, ""), "y": ("Y", ORANGE, "////")}


class Bar(NamedTuple):
    """A layer of a system, mean over seeds."""

    dataset: str
    system: str
    layer: str
    accuracy: float
    deviation: float
    runs: int
    paper: str


def needs(request: Request) -> Iterator[Need]:
    """Every system on every data set with every seed."""
    for dataset in request.datasets_of(USUAL):
        for system in request.methods_of(SYSTEMS):
            yield from (Need(run, (PROBE,)) for run in probed_runs(request, system, dataset))


def make(request: Request, results: Results) -> Figure:
    """Two bars for each system."""
    bars = [bar for dataset in request.datasets_of(USUAL) for bar in _bars(request, results, dataset)]
    datasets = list(dict.fromkeys(bar.dataset for bar in bars))

    findings = tuple(
        f"{bar.system} on {bar.dataset}, {bar.layer}: {beside_paper(bar.accuracy, bar.paper)}" for bar in bars
    )
    notes = f"Test images, which no encoder saw; {request.sentence()}."
    return Figure(TITLE, notes, Bar._fields, bars, by_dataset(bars, _draw), 1.9 * max(1, len(datasets)) + 0.2, findings)


def _bars(request: Request, results: Results, dataset: str) -> Iterator[Bar]:
    for system in request.methods_of(SYSTEMS):
        paper = printed("figure4", dataset, system) or ["", ""]
        for layer, said in zip(LAYERS, paper, strict=True):
            values = probe_values(results, probed_runs(request, system, dataset), layer)
            if values:
                spread = stdev(values) if len(values) > 1 else 0.0
                yield Bar(dataset, NAMES[system], layer, fmean(values), spread, len(values), said)


def _draw(axes: "Axes", bars: list[Bar]) -> None:
    systems = list(dict.fromkeys(bar.system for bar in bars))
    for number, (layer, (name, colour, hatch)) in enumerate(_LOOKS.items()):
        own = [bar for bar in bars if bar.layer == layer]
        places = np.array([systems.index(bar.system) for bar in own]) + 0.4 * (number - 0.5)
        looks: dict[str, Any] = {"color": colour, "edgecolor": "white", "linewidth": 0.4, "hatch": hatch}
        heights, spreads = [bar.accuracy for bar in own], [bar.deviation for bar in own]
        errors = spreads if any(spreads) else None
        drawn = axes.bar(places, heights, 0.4, yerr=errors, capsize=1.5, label=name, error_kw={"lw": 0.7}, **looks)
        axes.bar_label(drawn, [f"{height:.2f}".removeprefix("0") for height in heights], fontsize=6, padding=1)
    axes.set_xticks(range(len(systems)), systems)
    axes.grid(False, axis="x")
    # Room for the numbers above the bars.
    axes.set(ylabel="accuracy", ylim=(0, 1.1 * max(bar.accuracy + bar.deviation for bar in bars)))
    legend_above(axes, 2)


TARGET = Target(TITLE, needs, make, USUAL)
