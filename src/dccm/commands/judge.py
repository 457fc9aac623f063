"""Judge a run without labels: by itself, and beside another run on the same images."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dccm.arrays import Floats
from dccm.commands.compare import common_rows
from dccm.errors import UserError, require
from dccm.progress import SILENT, Watcher
from dccm.report import write_report
from dccm.runs.contents import Assignments
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import Again, Judgement, read_judgement, write_judgement
from dccm.runs.result import RunResult

_GONE = "The images of this run were in memory only"


class Judged(NamedTuple):
    """What can be said of a run."""

    judgement: Judgement
    directory: RunDirectory
    """Where it was written."""


def judge(
    run: str | Path,
    other: str | Path | None = None,
    *,
    again: bool = False,
    output: str | Path | None = None,
    device: str = "auto",
    cache: str | Path | None = None,
    watcher: Watcher = SILENT,
) -> Judged:
    """Judge the clusters of a run; no label is looked at. Record and report of the run are written anew.

    Args:
        run: The run directory.
        other: Another run on the same images, best one that differs by its seed alone.
        again: Whether such a run is made first; it takes as long as the first one.
        output: Where that one is written; None: beside the first, with its seed in the name.
        device: Where to compute.
        cache: Where prepared images are kept; None: the user's cache folder.
        watcher: Is told how it gets on.
    """
    require(other is None or not again, "Name another run, or let one be made with --again; not both.")
    require(again or output is None, "output is for the run that --again makes. Add --again, or leave it out.")
    directory = RunDirectory(run)
    directory.require()
    result = directory.read_result()
    assignments = directory.read_assignments(result)
    known = read_judgement(directory.judgement)
    judged = known
    if judged is None or judged.unmoved is None:
        judged = _measured(directory, result, assignments, device, cache, watcher)
        judged = replace(judged, again=known.again if known else [])
    if again:
        other = _another_run(directory, result, judged, output, cache, watcher)
    if other is not None:
        beside = _beside(assignments, RunDirectory(other), result.n_clusters)
        judged = replace(judged, again=[*(old for old in judged.again if old.run != beside.run), beside])
    if judged != known:
        write_judgement(directory.judgement, judged)
        write_report(directory)
    return Judged(judged, directory)


def _measured(
    directory: RunDirectory,
    result: RunResult,
    assignments: Assignments,
    device: str,
    cache: str | Path | None,
    watcher: Watcher,
) -> Judgement:
    """What a run that nobody judged yet says; without its images, less of it."""
    from dccm.runs.measuring import judge_features, judge_model

    features = _features(directory, result)
    try:
        reached = _reach(directory, assignments, device, cache, watcher)
    except UserError as error:
        watcher.say(f"{error} So predictions and perturbed images are left out.")
        silhouettes = judge_features(features, assignments.clusters, result.n_clusters, result.seed)
        return Judgement(images=0, sureness=None, balance=None, **silhouettes)
    return judge_model(features=features, clusters=assignments.clusters, **reached)


def _features(directory: RunDirectory, result: RunResult) -> Floats | None:
    if not directory.embedding.is_file():
        return None
    features = directory.read_embedding()
    return features if len(features) == result.n_images else None


def _reach(
    directory: RunDirectory, assignments: Assignments, device: str, cache: str | Path | None, watcher: Watcher
) -> dict[str, Any]:
    """Model and images of a run; a `UserError` if they cannot be had."""
    from dccm.commands.reading import read_for
    from dccm.data.reopen import reopened
    from dccm.runs.features import encoder_like, inputs_of
    from dccm.runs.model import Model

    stored = directory.read_source()
    source = reopened(stored.place)
    require(source is not None, f"{_GONE}.")
    model = Model.load(directory.path, device)
    image_set = read_for(model, source, watcher, cache=cache)
    same = len(image_set.images) == stored.images and image_set.origin.checksum == stored.checksum
    require(
        same and len(assignments.paths) == stored.images,
        f"The images in {stored.place} are others than those that the run saw.",
    )
    told: dict[str, Any] = {"cache": cache, "on_progress": watcher.training, "say": watcher.say}
    encoder = encoder_like(model.pretrained, device, cache) if model.pretrained else None
    inputs = inputs_of(image_set, encoder, **told)[0]
    return {"model": model, "inputs": inputs, "images": image_set.images, "encoder": encoder}


def _another_run(
    directory: RunDirectory,
    result: RunResult,
    judged: Judgement,
    output: str | Path | None,
    cache: str | Path | None,
    watcher: Watcher,
) -> Path:
    """Make one more run that differs by its seed alone; where it is."""
    from dccm.commands.inputs import take_inputs
    from dccm.data.reopen import reopened
    from dccm.runs.config import kept_config
    from dccm.runs.run import run
    from dccm.runs.speeds import duration

    begun, settings = directory.read_config()
    seed = 1 + max(result.seed, *(other.seed for other in judged.again), 0)
    made = RunDirectory(output or directory.path.with_name(f"{directory.path.name}-seed{seed}"))
    made.require_free()
    source = reopened(directory.read_source().place)
    require(
        source is not None,
        f"{_GONE}, so it cannot be made again. Make another run with seed = {seed} where they are, and name it.",
    )
    assert source is not None
    took = duration(result.cost.seconds)
    watcher.say(f"One more run, with seed {seed}, into {made.path}: about {took} of training, as the first one took.")
    config = kept_config(begun.method, begun.preset, begun.dataset, settings, {"seed": seed})
    image_set, inputs, encoder, pretrained, views = take_inputs(source, config, watcher, cache=cache)
    taken: dict[str, Any] = {"inputs": inputs, "encoder": encoder, "pretrained": pretrained, "views": views}
    run(image_set, config, made, on_progress=watcher.training, say=watcher.say, **taken)
    write_report(made)
    return made.path


def _beside(assignments: Assignments, other: RunDirectory, n_clusters: int) -> Again:
    """How far another run agrees, on the images that both have."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    from dccm.evaluation.unlabelled import found_again

    other.require()
    result = other.read_result()
    theirs = other.read_assignments(result)
    rows, names = common_rows(assignments, theirs)
    require(bool(names), f"{other.path} has no image of this run. Name a run on the same images.")
    one, two = assignments.clusters[rows[0]], theirs.clusters[rows[1]]
    return Again(
        run=other.path.resolve().name,
        seed=result.seed,
        images=len(names),
        ari=float(adjusted_rand_score(one, two)),
        nmi=float(np.clip(normalized_mutual_info_score(one, two), 0, 1)),
        found=found_again(one, two, n_clusters),
    )
