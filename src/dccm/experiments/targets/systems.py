"""Beyond the paper: any methods beside each other, with any presets: their clusters, and what their features say.

One run on all images for each word of `--methods` (`dccm:fast dccm:paper dec`; without it all methods on images) and
each seed; the encoders that there are learn once more, from training images alone, and are probed.
"""

from collections.abc import Iterator

from dccm.experiments.paper import SCORES
from dccm.experiments.probing import PROBE, probe_values, probed_runs
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Cell, Column, Table, score_cells
from dccm.experiments.targets import Need, Target
from dccm.methods import METHODS

TITLE = "Systems and presets beside each other"
USUAL = ("cifar10",)
NO_ENCODER = frozenset({"kmeans", "spectral", "agglomerative", "nmf", "gan", "decnn"})
"""Methods that learn no network which the probe could ask."""
_MEASURES = (*map(str.upper, SCORES), "passes", "conv", "y")


def _systems(request: Request) -> dict[str, tuple[str, str]]:
    """Method and preset of each row."""
    words = request.methods or [name for name, kind in METHODS.items() if not kind.needs_vectors]
    found = {word: word.partition(":") for word in words}
    return {word: (name, preset or "paper") for word, (name, _, preset) in found.items()}


def _runs(request: Request, dataset: str, method: str, preset: str) -> tuple[list[RunSpec], list[RunSpec]]:
    """Those whose clusters are scored, and those whose encoders are probed."""
    whole = request.over_seeds(method, dataset, preset=preset)
    return whole, [] if method in NO_ENCODER else probed_runs(request, method, dataset, preset=preset)


def needs(request: Request) -> Iterator[Need]:
    """Each system twice: for its clusters, and for its features."""
    for dataset in request.datasets_of(USUAL):
        for method, preset in _systems(request).values():
            whole, probed = _runs(request, dataset, method, preset)
            yield from map(Need, whole)
            yield from (Need(run, (PROBE,)) for run in probed)


def make(request: Request, results: Results) -> Table:
    """A row for each system, six columns for each data set."""
    datasets = request.datasets_of(USUAL)
    rows = {
        word: [cell for dataset in datasets for cell in _cells(results, *_runs(request, dataset, method, preset))]
        for word, (method, preset) in _systems(request).items()
    }
    columns = tuple(
        Column(name, dataset, "none" if name == "passes" else "high") for dataset in datasets for name in _MEASURES
    )
    notes = "conv and y: accuracy of the probe of the last convolution and of the deep feature on test images"
    return Table(TITLE, columns, rows, f"{request.sentence()}; {notes}")


def _cells(results: Results, whole: list[RunSpec], probed: list[RunSpec]) -> list[Cell]:
    found = [result for result in map(results.result, whole) if result is not None]
    passes = tuple(result.cost.passes for result in found if result.cost.passes)
    layers = [Cell(probe_values(results, probed, layer)) for layer in ("conv", "y")]
    return [*score_cells(results, whole), Cell(passes, decimals=1), *layers]


TARGET = Target(TITLE, needs, make, USUAL, "beyond")
