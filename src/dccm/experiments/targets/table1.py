"""Table 1: the data sets, as they were read here, beside what the paper states.

One run of k-means for each data set, which Table 2 has too: its run directory says how many images there were.
"""

from collections.abc import Iterator

from dccm.data.datasets import DATASETS
from dccm.experiments.paper import numbers
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.table import Cell, Column, Table
from dccm.experiments.targets import Need, Target
from dccm.experiments.targets.table2 import USUAL

TITLE = "Table 1: the data sets"
COLUMNS = (Column("images", best="none"), Column("clusters", best="none"), Column("size", best="none"))


def needs(request: Request) -> Iterator[Need]:
    """The cheapest run on each data set."""
    for dataset in request.datasets_of(USUAL):
        yield Need(_run(request, dataset))


def _run(request: Request, dataset: str) -> RunSpec:
    return request.spec("kmeans", dataset, request.seeds[0])


def make(request: Request, results: Results) -> Table:
    """A row for each data set."""
    rows = {_title(name): _cells(request, results, name) for name in request.datasets_of(USUAL)}
    limit = f"At most {request.limit:,} images of each are taken here" if request.limit else "All images are taken"
    return Table(TITLE, COLUMNS, rows, f"{limit}; in grey, what the paper states.", "data set")


def _title(name: str) -> str:
    return DATASETS[name].title if name in DATASETS else name


def _cells(request: Request, results: Results, name: str) -> list[Cell]:
    train, test, clusters, side = numbers()["table1"].get(name, (None,) * 4)
    printed = ["", "", ""] if train is None else [f"{train + test:,}", str(clusters), f"{side} x {side} x 3"]
    result = results.result(_run(request, name))
    if result is None:
        return [Cell(paper=text) for text in printed]
    height, width, channels = results.run(_run(request, name)).read_source().shape
    found = (f"{result.n_images:,}", str(result.n_clusters), f"{height} x {width} x {channels}")
    return [Cell(words=words, paper=text) for words, text in zip(found, printed, strict=True)]


TARGET = Target(TITLE, needs, make, USUAL)
