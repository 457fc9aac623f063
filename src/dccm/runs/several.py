"""A run of several processes: what suits it, how others follow the one that writes, when it goes on by itself."""

import json
from collections.abc import Sequence
from typing import Any

from dccm.arrays import Inputs
from dccm.documents import read_small
from dccm.errors import UserError, counted, require
from dccm.files import write_atomically
from dccm.launched import launched
from dccm.methods.base import GradientMethod
from dccm.runs.config import RunConfig
from dccm.runs.directory import RunDirectory
from dccm.runs.fitting import fit
from dccm.runs.lesson import Lesson
from dccm.runs.model import Model
from dccm.training.checkpoint import Checkpoint, CheckpointFolder
from dccm.training.workers import Workers

MACHINES_MAY_DIFFER = frozenset({"device", "threads"})
"""Settings that need not be the same in all processes."""


def meet(model: Model, images: list[Any], workers: Workers) -> None:
    """Wait until all processes have a model and images; refuse what does not suit several, or is not the same.

    Args:
        model: An untrained one.
        images: By what they are compared.
        workers: The processes.
    """
    _require_suits(model, workers.place.of)
    workers.agree(settings=_comparable(model.config), images=images)


def _require_suits(model: Model, processes: int) -> None:
    """Refuse what several processes cannot do together."""
    if processes == 1:
        return
    method, config = model.method, model.config
    alone = "one process suffices. Leave out processes, or torchrun"
    require(
        isinstance(method, GradientMethod),
        f"processes must be 1 for the method '{config.method}', got {processes}: it learns without gradient steps, and "
        f"{alone}.",
    )
    assert isinstance(method, GradientMethod)
    require(
        not method.one_process,
        f"processes must be 1 for the method '{config.method}', got {processes}: it {method.one_process}, and {alone}.",
    )
    size = method.config.mini_batch
    require(
        2 * processes <= size,
        f"mini_batch must hold two images for each process, {2 * processes} for {processes}, got {size}. "
        "Take fewer processes, or a larger mini_batch.",
    )
    for name, usual in (("milestones", 0), ("compile", False)):
        value = getattr(config.training, name)
        require(value == usual, f"{name} must be left out with {processes} processes, got {value}.")


def _comparable(config: RunConfig) -> dict[str, Any]:
    """The settings that must be the same in all processes."""
    settings = {name: value for name, value in config.settings().items() if name not in MACHINES_MAY_DIFFER}
    named = {"method": config.method, "preset": config.preset, "dataset": config.dataset}
    found: dict[str, Any] = json.loads(json.dumps(named | settings))
    return found


def goes_on(directory: RunDirectory, resume: bool, workers: Workers) -> bool:
    """Whether a run is resumed: as the user wants it, or because processes of the same command were lost."""
    told = launched()
    if told is None:
        return resume
    place = directory.checkpoints / "job"
    begun = directory.holds_run and place.is_file() and read_small(place).decode("utf-8", "replace") == told.job
    return workers.same(resume or begun)


def introduction(*, again: bool) -> str | None:
    """Who learns together; None: a single process that is on its own.

    Args:
        again: Whether they go on with the run of others.
    """
    told = launched()
    if told is None:
        return None
    word, goes, learns = ("process", "goes", "learns") if told.processes == 1 else ("processes", "go", "learn together")
    who = f"{told.processes} {word} on {counted(told.machines, 'machine')}"
    if again:
        return f"A process was lost or has joined: {who} {goes} on from the last checkpoint."
    return f"{who} {learns}."


def lead(directory: RunDirectory, checkpoint: Checkpoint | None, workers: Workers) -> None:
    """Note which command began the run, and let the others follow; all begin to train when all are ready."""
    told = launched()
    if told is None:
        return
    directory.checkpoints.mkdir(exist_ok=True)
    write_atomically(directory.checkpoints / "job", told.job)
    folder = CheckpointFolder(directory.checkpoints)
    workers.agree()
    workers.same(folder.newest_name() if checkpoint else "")
    workers.agree()


def follow(
    inputs: Inputs,
    model: Model,
    directory: RunDirectory,
    workers: Workers,
    *,
    views: Sequence[Inputs] = (),
    lesson: Lesson | None = None,
) -> Model:
    """Train along with the process that writes; the model that it wrote.

    Args:
        inputs: As for `run`.
        model: An untrained one.
        directory: Where the other process writes.
        workers: Both of them, and others.
        views: As for `run`.
        lesson: As for `run`.
    """
    workers.agree()
    name = workers.same("")
    if not directory.config.is_file():
        raise UserError(
            f"The folder {directory.path} is not the same for all processes: one has begun a run in it, which another "
            "one does not see. Choose an output folder on storage that all machines share."
        )
    checkpoint = CheckpointFolder(directory.checkpoints).read(name) if name else None
    workers.agree()
    fit(inputs, model.config, model=model, views=views, resume=checkpoint, lesson=lesson, workers=workers)
    workers.part()
    return Model.load(directory.model, model.config.training.device)
