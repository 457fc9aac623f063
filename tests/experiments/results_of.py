"""Results folders with finished runs that nobody had to make, for the tests of what becomes of them."""

from pathlib import Path
from typing import Any

import numpy as np

from dccm.data.images import ImageSet
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Target
from dccm.runs.contents import Begun
from dccm.runs.directory import RunDirectory
from dccm.runs.milestones import Milestone, write_milestone
from dccm.runs.result import Cost, RunResult


def finish(results: Results, spec: RunSpec, scores: dict[str, float] | None = None, **measures: dict[str, Any]) -> None:
    """A run directory with a result, and what measures found by their names."""
    directory = results.run(spec)
    directory.path.mkdir(parents=True, exist_ok=True)
    cost = Cost(1.0, 2.0, 3.0)
    result = RunResult(spec.method, spec.preset, None, 4, 0, 0, 2, spec.seed, {}, scores, None, cost, [])
    directory.write_result(result)
    results.note_finished(spec, {})
    for name, found in measures.items():
        results.note_measure(spec, name.replace("_", "-"), found)


def opened(folder: Path) -> Results:
    results = Results(folder)
    results.open()
    return results


def finish_all(results: Results, target: Target, request: Request, found: dict[str, Any], scores: Any = None) -> None:
    """All runs of a target, whose measures found the same."""
    for number, need in enumerate(target.needs(request)):
        finish(results, need.spec, scores and scores(number))
        for measure in need.measures:
            results.note_measure(need.spec, measure.name, found[measure.name])


def run_with(folder: Path, predictions: list[np.ndarray], features: int = 3, **settings: object) -> RunDirectory:
    """A run directory that kept these predictions, and random features at the start, in the middle and at the end."""
    directory = RunDirectory(folder)
    directory.create()
    directory.write_config(Begun("dccm", "paper", "", len(predictions[0]), ""), ())
    directory.config.write_text(directory.config.read_text() + "batch_size = 100\n")
    random = np.random.default_rng(0)
    for number, prediction in enumerate(predictions):
        featured = number in (0, len(predictions) // 2, len(predictions) - 1)
        feature = random.normal(size=(len(prediction), features)).astype(np.float32) if featured else None
        moment = Milestone(number * len(prediction), float(number), prediction.astype(np.float32), feature)
        write_milestone(directory.milestones, moment)
    return directory


def images_with(labels: list[int] | np.ndarray) -> ImageSet:
    count = len(labels)
    return ImageSet(np.zeros((count, 8, 8, 1), np.uint8), [str(number) for number in range(count)], np.asarray(labels))
