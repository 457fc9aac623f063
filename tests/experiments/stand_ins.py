"""A grid without training: runs that are files, made by the process of the test."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dccm.data.images import ImageSet
from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets
from dccm.experiments.engines import Message
from dccm.experiments.grid import run_grid
from dccm.experiments.measure import Measure
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need
from dccm.experiments.worker import Work, do
from dccm.runs.contents import StoredSource
from dccm.runs.directory import RunDirectory
from dccm.runs.result import Cost, RunResult
from dccm.training.progress import OnProgress

QUICK = Request(budget="passes:1", limit=64, datasets=("digits",))
made_runs: list[str] = []
"""Keys of the runs that were made, in their order."""
SCORES = {"acc": 0.5, "nmi": 0.25, "ari": 0.125}
RESULT = RunResult(
    method="kmeans", preset="paper", dataset="digits", n_images=64, n_skipped=0, n_duplicates=0, n_clusters=10, seed=0,
    settings={}, scores=SCORES, baseline=None, cost=Cost(1.0, 2.0, 100.0), warnings=[],
)  # fmt: skip


def make_run(spec: RunSpec, data: DataSets, results: Results, on_progress: OnProgress) -> None:
    """Write the result of a run; seed 13 brings bad luck."""
    made_runs.append(spec.key)
    if spec.seed == 13:
        raise UserError("mini_batch must not exceed 13. Lower it.")
    if spec.seed == 14:
        raise ZeroDivisionError("division by zero")
    directory = results.run(spec)
    directory.path.mkdir(parents=True, exist_ok=True)
    directory.write_result(replace(RESULT, method=spec.method, seed=spec.seed))
    stored = StoredSource("array", "", "", 64, (8, 8, 1), "")
    directory.source.write_text(json.dumps(stored.__dict__), encoding="utf-8")
    directory.config.write_text(
        '[run]\nmethod = "kmeans"\npreset = "paper"\ndataset = "digits"\nimages = 64\n'
        'checksum = ""\n[settings]\nfit = "crop"\n',
        encoding="utf-8",
    )


def count_labels(directory: RunDirectory, images: ImageSet) -> dict[str, int]:
    """A measure that costs nothing."""
    assert images.labels is not None
    made_runs.append(f"measure of {directory.path.name}")
    return {"classes": len(np.unique(images.labels)), "images": len(images.images)}


class Counted(NamedTuple):
    """What it finds."""

    classes: int
    images: int


COUNT = Measure("classes", count_labels, Counted)


class Here:
    """An engine that makes runs at once, in this process."""

    at_once = 2

    def __init__(self, work: Work) -> None:
        self.work = work
        self.news: list[Message] = []
        self.stopped = False

    def start(self, need: Need) -> None:
        self.news.append(Message(need.spec.key, 1.0, outcome=do(self.work, need, lambda done, left: None)))

    def messages(self) -> list[Message]:
        news, self.news = self.news, []
        return news

    def stop(self) -> None:
        self.stopped = True


def opened(path: Path) -> Results:
    """A new folder of results; what was made before is forgotten."""
    results = Results(path)
    results.open()
    made_runs.clear()
    return results


def worked(needs: list[Need], results: Results) -> None:
    """Make all runs in this process."""
    run_grid(needs, results, Here(Work(results, DataSets(), make_run)))
