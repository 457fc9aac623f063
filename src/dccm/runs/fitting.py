"""Images and settings -> a trained model; nothing is written but checkpoints."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dccm.arrays import ImageShape, Inputs
from dccm.config import Settings, TrainingConfig
from dccm.data.loader import Loader
from dccm.errors import require
from dccm.machine import choose_device, choose_precision, keep_memory, require_compiler, using_threads, within_memory
from dccm.methods.base import DirectMethod
from dccm.methods.dividing import divided
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.map_encoder import MapEncoder
from dccm.runs.calibration import fit_confidence
from dccm.runs.config import RunConfig
from dccm.runs.keeper import MilestoneKeeper
from dccm.runs.lesson import Lesson, teach, times_drawn
from dccm.runs.mining import let_other_run_mine
from dccm.runs.model import Model
from dccm.training.checkpoint import Checkpoint, CheckpointFolder
from dccm.training.loop import train
from dccm.training.progress import OnProgress, Progress, Record, Stage, ignore
from dccm.training.workers import ALONE, Workers

_STEPS = 4
"""Mini-batches that fewer images than one of the usual size are divided into."""


@dataclass(frozen=True)
class Fitted:
    """A trained model and how it got there."""

    model: Model
    history: list[Record]
    seconds: float
    used: Settings
    """Device and precision that it was computed with, whatever `auto` turned out to be."""


def require_machine(training: TrainingConfig) -> None:
    """Refuse a device, a precision or a compilation that this machine does not have."""
    device = choose_device(training.device)
    choose_precision(training.precision, device)
    if training.compile:
        require_compiler(device)


def new_model(
    images: Inputs, config: RunConfig, encoder: FeatureEncoder | None = None, lesson: Lesson | None = None
) -> Model:
    """An untrained model for these images; settings that do not suit them are refused.

    Where there are fewer images than in a mini-batch, the model's own settings say how many it takes instead.

    Args:
        images: (N, H, W, C), or what stands in their place.
        config: All settings.
        encoder: The pretrained one that made it; None: there is none. Blocks of it that are trained begin as they are.
        lesson: What people said of the clusters of another run, from whose weights the model goes on; None: it begins
            anew.
    """
    clusters, count = config.data.n_clusters, len(images)
    require(
        clusters <= count,
        f"n_clusters must not exceed the number of images, {count}, got {clusters}. "
        "Ask for fewer clusters or bring more images.",
    )
    height, width, channels = images.shape[1:]
    model = Model.untrained(ImageShape(channels, height, width), config)
    if count < model.method.fewest_images:
        own = replace(config.own, mini_batch=max(2, count // _STEPS))  # type: ignore[call-arg]
        model = Model.untrained(model.shape, replace(config, own=own))
    if isinstance(encoder, MapEncoder):
        encoder.begin(model.method)
    let_other_run_mine(model, images)
    if lesson is not None:
        teach(model, lesson)
    return model


def fewer_at_once(model: Model, wanted: RunConfig) -> str | None:
    """A sentence for the user if a model takes smaller mini-batches than were wanted, as it has few images."""
    before, now = (config.settings().get("mini_batch") for config in (wanted, model.config))
    if before == now:
        return None
    return f"There are fewer images than the {before} of a mini-batch, so it takes {now} of them: mini_batch = {now}."


def fit(
    images: Inputs,
    config: RunConfig,
    *,
    model: Model | None = None,
    views: Sequence[Inputs] = (),
    checkpoints: CheckpointFolder | None = None,
    resume: Checkpoint | None = None,
    milestones: Path | None = None,
    lesson: Lesson | None = None,
    on_progress: OnProgress | None = None,
    workers: Workers = ALONE,
) -> Fitted:
    """Train a model on images; no label can be passed.

    Args:
        images: (N, H, W, C), or vectors in their place.
        config: All settings.
        model: The one to train; None: a new one, of which no part is pretrained.
        views: Vectors of perturbed copies, as many as the settings say; see `views_of`.
        checkpoints: Where to write checkpoints; None: nowhere.
        resume: A checkpoint to go on from.
        milestones: Where to keep what the setting of this name asks for; None: there is no place for it.
        lesson: What people said of the images, where the model has the weights of another run; None: nothing.
        on_progress: Called after each large batch, or stage of a method without epochs.
        workers: The processes that train together; only the one that writes has a model that is finished.
    """
    require_machine(config.training)
    wanted = config.data.views
    require(len(views) == wanted, f"views must be {wanted}, as the settings say, got {len(views)}. Take views_of.")
    require(
        milestones is not None or not config.training.milestones,
        f"milestones must be 0 where no run directory is written, got {config.training.milestones}. "
        "Cluster into a folder, or leave it out.",
    )
    keep_memory()
    with using_threads(config.training.threads), within_memory("training"):
        begun = model or new_model(images, config)
        loader = begun.loader(images, views, times_drawn(begun, lesson) if lesson else None)
        fitted = _fitted(begun, loader, checkpoints, resume, milestones, on_progress, workers)
        if workers.writes:
            fit_confidence(fitted.model, images, on_progress or ignore)
        return fitted


def _fitted(
    model: Model,
    loader: Loader,
    checkpoints: CheckpointFolder | None,
    resume: Checkpoint | None,
    milestones: Path | None,
    on_progress: OnProgress | None,
    workers: Workers,
) -> Fitted:
    config = model.config
    started = time.monotonic() - (resume.position.seconds if resume else 0)
    precision = choose_precision(config.training.precision, loader.device)
    used: Settings = {"device": str(loader.device), "precision": precision}
    if isinstance(model.method, DirectMethod):
        model.method.fit(loader, on_progress or ignore)
        return Fitted(model, [], time.monotonic() - started, used)
    if config.training.compile:
        model.learner.compile_networks()
    if on_progress is not None:
        model.learner.on_progress = on_progress
    training = replace(config.training, precision=precision)
    keeper = None
    if milestones is not None and training.milestones:
        keeper = MilestoneKeeper(milestones, model.learner, loader, training, resume)
        on_progress = _both(keeper, on_progress or ignore)
    told: dict[str, Any] = {"checkpoints": checkpoints, "resume": resume, "on_progress": on_progress}
    with workers.training(), divided(model.learner, workers):
        history = train(model.learner, loader, training, **told)
    if workers.writes:
        model.method = model.learner.finish(loader)
    seconds = time.monotonic() - started - (keeper.seconds if keeper else 0)
    return Fitted(model, history, seconds, used)


def _both(first: OnProgress, second: OnProgress) -> OnProgress:
    """Tell one, then the other."""

    def tell(progress: Progress | Stage) -> None:
        first(progress)
        second(progress)

    return tell
