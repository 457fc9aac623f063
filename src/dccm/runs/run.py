"""Images and settings -> a filled run directory; the only place where all parts meet."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dccm.arrays import Inputs
from dccm.data.images import ImageSet
from dccm.data.near_duplicates import near_duplicates
from dccm.errors import counted, require
from dccm.evaluation.baseline import Baseline
from dccm.evaluation.confusion import disagreements
from dccm.evaluation.metrics import scores
from dccm.methods.base import encoder_of
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.runs.choice import Choice, write_choice
from dccm.runs.confidence import Reject, rejected_ones, require_graded, threshold
from dccm.runs.config import RunConfig, with_defaults
from dccm.runs.contents import Assignments, Begun, StoredConfig, config_text, parse_config
from dccm.runs.directory import RunDirectory
from dccm.runs.features import Pretrained
from dccm.runs.fitting import Fitted, fewer_at_once, fit, new_model
from dccm.runs.improved import Improved
from dccm.runs.judgement import write_judgement
from dccm.runs.judging import surety_of
from dccm.runs.lesson import Lesson
from dccm.runs.measuring import judge_model
from dccm.runs.members import DISAGREEMENTS, PAIRS, rows_of_pairs, shown_rows
from dccm.runs.model import Assigned, Model
from dccm.runs.result import Cost, RunResult, pretrained_note
from dccm.runs.several import follow, lead, meet
from dccm.training.checkpoint import Checkpoint, CheckpointFolder
from dccm.training.progress import OnProgress, Progress, Record, Stage, ignore
from dccm.training.workers import ALONE, Workers

MAY_DIFFER = frozenset({"device", "epochs", "budget_minutes", "budget_passes", "checkpoint_minutes"})
"""Settings that a resumed run may change: where it computes and for how long."""

Compare = Callable[[ImageSet, int, int], Baseline]
"""A simple method to compare with: images with labels, K and a seed -> its scores."""
Say = Callable[[str], None]
"""Called with a sentence that the user should read."""


@dataclass(frozen=True)
class Clustering:
    """A finished run."""

    directory: RunDirectory
    result: RunResult
    image_set: ImageSet
    model: Model


def run(
    image_set: ImageSet,
    config: RunConfig,
    directory: RunDirectory,
    *,
    inputs: Inputs | None = None,
    pretrained: Pretrained | None = None,
    encoder: FeatureEncoder | None = None,
    views: Sequence[Inputs] = (),
    choice: Choice | None = None,
    lesson: Lesson | None = None,
    resume: bool = False,
    reject: Reject | None = None,
    baseline: Compare | None = None,
    on_progress: OnProgress = ignore,
    say: Say = print,
    workers: Workers = ALONE,
) -> Clustering:
    """Cluster images and fill a run directory.

    Args:
        image_set: The images; their labels, if there are any, are read after training, for the scores.
        config: All settings.
        directory: Where everything is written.
        inputs: Vectors that are clustered in the place of the images; None: the images themselves are.
        pretrained: The encoder that made those vectors, by name.
        encoder: That encoder itself; it is needed where its last blocks are trained.
        views: Vectors of perturbed copies of the images, as many as the settings say.
        choice: How the number of clusters was chosen; None: it was given, or the run that is resumed has it.
        lesson: What people said of another run, from whose model this one goes on; None: it begins anew.
        resume: Go on from the newest sound checkpoint in it.
        reject: Which images get no cluster; None: all get one.
        baseline: A simple method to compare with, when there are labels.
        on_progress: Called after each large batch, or stage of what has no epochs.
        say: Called with a sentence that the user should read.
        workers: The processes that train together; one of them fills the directory.
    """
    inputs = image_set.images if inputs is None else inputs
    model = new_model(inputs, config, encoder, lesson)  # Before anything is written: it refuses what does not fit.
    if note := fewer_at_once(model, config):
        say(note)
    config, model.pretrained = model.config, pretrained
    if reject is not None:
        require_graded(model.method, config.method)
    meet(model, [*inputs.shape, image_set.origin.checksum], workers)
    if not workers.writes:
        followed = follow(inputs, model, directory, workers, views=views, lesson=lesson)
        return Clustering(directory, directory.read_result(), image_set, followed)
    say(_introduction(image_set, model))
    if (said := lesson.said if lesson else None) is not None:
        say(said.sentence())
    with directory.filling(resume=resume):
        checkpoint = _begin(image_set, config, directory, said, resume, say)
        if choice is not None:
            write_choice(directory.choice, choice)
        checkpoints = CheckpointFolder(directory.checkpoints, config.settings())
        begun: dict[str, Any] = {"model": model, "checkpoints": checkpoints, "resume": checkpoint, "lesson": lesson}
        begun |= {"milestones": directory.milestones, "workers": workers}
        lead(directory, checkpoint, workers)
        fitted = fit(inputs, config, views=views, on_progress=_kept(directory, checkpoint, on_progress), **begun)
        with directory.writing_embedding(image_set.names) as add:
            assigned = fitted.model.assign(inputs, take_features=add, on_progress=on_progress)
        fitted.model.reject_below = reject and threshold(reject, assigned.confidences)
        on_progress(Stage("writing results", 0.0))
        result = _fill(directory, image_set, config, fitted, assigned, baseline, said)
        seen = inputs, image_set.images, directory.read_embedding(), assigned.clusters
        write_judgement(directory.judgement, judge_model(fitted.model, *seen, encoder))
        on_progress(Stage("writing results", 1.0))
    workers.part()
    return Clustering(directory, result, image_set, fitted.model)


def _kept(directory: RunDirectory, checkpoint: Checkpoint | None, on_progress: OnProgress) -> OnProgress:
    """Whoever is told of progress, told after the history of complete epochs is written."""
    history: list[Record] = list(checkpoint.position.history) if checkpoint else []

    def keep(progress: Progress | Stage) -> None:
        if isinstance(progress, Progress) and progress.record is not None:
            history.append(progress.record)
            directory.write_history(history)
        on_progress(progress)

    return keep


def _introduction(image_set: ImageSet, model: Model) -> str:
    """What is about to be clustered, by which method and network."""
    count, height, width, channels = image_set.images.shape
    config, encoder = model.config, encoder_of(model.method)
    by = config.method + (f" with {encoder.description}" if encoder else "")
    by += f" on features of {model.pretrained.name}" if model.pretrained else ""
    return (
        f"{count:,} images of {height} x {width} x {channels} ({len(image_set.skipped):,} skipped, "
        f"{counted(len(image_set.duplicates), 'duplicate')}) into {counted(config.data.n_clusters, 'cluster')} "
        f"by {by}, preset {config.preset}."
    )


def _begin(
    image_set: ImageSet, config: RunConfig, directory: RunDirectory, said: Improved | None, resume: bool, say: Say
) -> Checkpoint | None:
    """Make the directory, or find the checkpoint to go on from; note what the run is begun with."""
    begun = Begun(config.method, config.preset, config.dataset, len(image_set.images), image_set.origin.checksum)
    if said is not None:
        begun = replace(begun, improved_from=said.improved_from, changes=said.changes)
    checkpoint = None
    if resume:
        require_own_folders(directory)
        require_same(directory, parse_config(config_text(begun, config.sections)))
        checkpoint = _newest(directory, say)
        require_trained_with(directory, checkpoint, config)
    directory.write_config(begun, config.sections)
    directory.write_source(image_set)
    directory.write_left_out(image_set)
    return checkpoint


def _newest(directory: RunDirectory, say: Say) -> Checkpoint | None:
    checkpoint, problems = CheckpointFolder(directory.checkpoints).newest()
    for problem in problems:
        say(problem)
    if checkpoint is None:
        say("No sound checkpoint was found; the run starts from the beginning.")
    return checkpoint


def _fill(
    directory: RunDirectory,
    image_set: ImageSet,
    config: RunConfig,
    fitted: Fitted,
    assigned: Assigned,
    baseline: Compare | None,
    said: Improved | None,
) -> RunResult:
    """Fill the directory of a trained model; labels are looked at here for the first time."""
    rejected = rejected_ones(assigned.confidences, fitted.model.reject_below)
    assignments = Assignments(image_set.names, assigned.clusters, assigned.confidences, rejected, assigned.outliers)
    fitted.model.save(directory.model)
    directory.write_history(fitted.history)
    directory.write_assignments(assignments)
    _write_shown(directory, image_set, assignments)
    result = replace(_result(image_set, config, fitted, assigned, assignments, baseline), improved=said)
    directory.write_result(result)
    return result


def _write_shown(directory: RunDirectory, image_set: ImageSet, assignments: Assignments) -> None:
    """Write what the report shows and nothing else needs."""
    names, labels = image_set.names, image_set.labels
    near = near_duplicates(image_set.images, names, image_set.duplicates)
    directory.write_near_duplicates(near)
    also = rows_of_pairs(names, [*image_set.duplicates[:PAIRS], *near[:PAIRS]])
    if labels is not None:
        directory.write_labels(names, labels)
        also += disagreements(labels, assignments.clusters, assignments.confidences)[:DISAGREEMENTS].tolist()
    directory.write_thumbnails(image_set.images, shown_rows(assignments, directory.read_embedding(), also))


def _result(
    image_set: ImageSet,
    config: RunConfig,
    fitted: Fitted,
    assigned: Assigned,
    assignments: Assignments,
    baseline: Compare | None,
) -> RunResult:
    last = fitted.history[-1] if fitted.history else {}
    labels, compared = image_set.labels, None
    if baseline is not None and labels is not None:
        compared = baseline(image_set, config.data.n_clusters, config.training.seed)
    return RunResult(
        method=config.method,
        preset=config.preset,
        dataset=config.dataset or None,
        n_images=len(image_set.images),
        n_skipped=len(image_set.skipped),
        n_duplicates=len(image_set.duplicates),
        n_clusters=config.data.n_clusters,
        seed=config.training.seed,
        settings=config.settings() | fitted.used,
        scores=None if labels is None else scores(labels, assignments.clusters),
        baseline=compared,
        cost=Cost(fitted.seconds, last.get("passes", 0.0), peak_memory()),
        warnings=last.get("warnings", []),
        pretrained=pretrained_note(fitted.model.pretrained.name) if fitted.model.pretrained else None,
        confidence=surety_of(fitted.model, assigned, assignments, labels),
    )


def require_own_folders(directory: RunDirectory) -> None:
    """Refuse links where folders should be: a run of a stranger could write wherever they lead."""
    for folder in (directory.model, directory.checkpoints, directory.milestones):
        require(
            not folder.is_symlink(),
            f"{folder} is a link, through which a run writes nothing. Put the folder itself into its place.",
        )


def require_same(directory: RunDirectory, wanted: StoredConfig) -> None:
    """A resumed run has the settings and images that it was begun with."""
    stored = directory.read_config()
    method = wanted.begun.method
    settings = (with_defaults(method, stored.settings), with_defaults(method, wanted.settings))
    for before, now in ((vars(stored.begun), vars(wanted.begun)), settings):
        for name in sorted((set(before) | set(now)) - MAY_DIFFER):
            require(
                before.get(name) == now.get(name),
                f"The run in {directory.path} was begun with {name} = {before.get(name)}, now it is {now.get(name)}. "
                "Resume with the same images and settings, or choose another output folder.",
            )


def require_trained_with(directory: RunDirectory, checkpoint: Checkpoint | None, config: RunConfig) -> None:
    """Refuse to go on with other settings than a run was trained with, as when somebody edited `config.toml`."""
    before = checkpoint.settings or {} if checkpoint else {}
    now = json.loads(json.dumps(config.settings()))
    for name in sorted(set(now) - MAY_DIFFER):
        require(
            name not in before or before[name] == now[name],
            f"{directory.config} says {name} = {now[name]}, and the run was trained with {before.get(name)} so far. "
            "Put that back, or choose another output folder.",
        )


def peak_memory() -> float | None:
    """Largest resident memory of this process so far, in MB; unknown on Windows."""
    try:
        # Linux counts what a parent had before it started this process into `ru_maxrss`, but not here.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        return _largest_resident_set()


def _largest_resident_set() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
