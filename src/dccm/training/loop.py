"""The only loop. A method yields its updates; the loop takes no labels, so neither can peek at them."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import NoReturn

import torch
from torch import Tensor

from dccm.config import TrainingConfig
from dccm.data.loader import Batch, Loader
from dccm.errors import UserError
from dccm.training.checkpoint import Checkpoint, CheckpointFolder, load_optimizer, optimizer_tensors
from dccm.training.clock import Clock, set_learning_rates, share_done
from dccm.training.collapse import Watched
from dccm.training.position import Position
from dccm.training.progress import Progress, Record
from dccm.training.update import Learner, Moment, Update, computed_in
from dccm.training.workers import LostWorkerError

_BEYOND = 1e15
"""Weights of this size are on their way to infinity."""


class InterruptedRunError(KeyboardInterrupt):
    """The user ended the run; `checkpoint` names where it goes on, if it was written.

    Who knows nothing of runs takes it for the Ctrl-C that it was.
    """

    def __init__(self, checkpoint: str | None) -> None:
        super().__init__("interrupted")
        self.checkpoint = checkpoint


def train(
    learner: Learner,
    loader: Loader,
    config: TrainingConfig,
    *,
    checkpoints: CheckpointFolder | None = None,
    resume: Checkpoint | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[Record]:
    """Run the updates of a method until its epochs or its budget are used up.

    Args:
        learner: The method.
        loader: Its images.
        config: Length, schedule and seed of the run.
        checkpoints: Where to write checkpoints; None: nowhere.
        resume: A checkpoint of the same run to go on from.
        on_progress: Called after each large batch.

    Returns:
        The history, one record per epoch.
    """
    run = _Run(learner, loader, config, checkpoints)
    if resume is not None:
        run.load(resume)
    try:
        run.to_the_end(on_progress)
    except KeyboardInterrupt:
        raise InterruptedRunError(run.write_snapshot()) from None
    except LostWorkerError:
        run.write_snapshot()  # Those that replace the lost ones go on here.
        raise
    return run.position.history


class _Run:
    """The state of one call of `train`."""

    def __init__(
        self, learner: Learner, loader: Loader, config: TrainingConfig, checkpoints: CheckpointFolder | None
    ) -> None:
        self.learner, self.loader, self.config, self.checkpoints = learner, loader, config, checkpoints
        self.position = Position()
        self.clock = Clock()
        self.images_before = 0
        self.last_written = time.monotonic()
        self.snapshot: Checkpoint | None = None

    def to_the_end(self, on_progress: Callable[[Progress], None] | None) -> None:
        position = self.position
        while self.done() < 1:
            if position.batch == 0:
                self.learner.before_epoch(self.loader, Moment(position.epoch, self.done()))
                self.learner.workers.same_state(self.learner.state_dict)
            for batch in self.loader.shuffled(position.epoch, position.batch):
                self.take_snapshot()
                self.learn_from(replace(batch, done=min(1.0, self.done())))
                position.batch += 1
                over = self.done() >= 1
                complete = position.batch == self.loader.batches or over
                record = position.close_epoch(len(self.loader)) if complete else None
                if on_progress is not None and self.learner.workers.writes:
                    with self.clock.stopped():
                        on_progress(self.progress(record))
                if over:
                    break
        self.take_snapshot()
        if not self.is_sound():
            self.stop_at_broken_loss("a weight", math.inf)
        self.write_snapshot()

    def learn_from(self, batch: Batch) -> None:
        """All updates of one large batch; values are read only at its end, so that nothing waits for them before."""
        self.learner.train()
        set_learning_rates(self.learner.optimizers.values(), self.config.schedule, self.done())
        sums: dict[str, Tensor] = {}
        counts: Counter[str] = Counter()
        watched = None
        for update in self.updates(batch):
            update.step(self.learner.workers)
            for name, value in ({"loss": update.loss} | dict(update.terms)).items():
                sums[name] = sums.get(name, 0) + value.detach()
                counts[name] += 1
            self.position.images += update.images
            watched = update.watched or watched
            if self.is_out_of_time():
                break  # Not at the end of the large batch, which can be a minute away.
        self.add(sums, counts, watched)

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Those of the method, which may not get through a batch with weights that are no numbers any more."""
        try:
            yield from computed_in(self.config.precision, iter(self.learner.updates(batch)), batch.images.device)
        except (RuntimeError, ValueError, IndexError):
            if self.is_sound():
                raise
            self.stop_at_broken_loss("a weight", math.inf)

    def is_sound(self) -> bool:
        """Whether all weights are numbers that something can be computed with."""
        weights = self.learner.state_dict().values()
        return all(bool((weight.abs() < _BEYOND).all()) for weight in weights if weight.is_floating_point())

    def add(self, sums: dict[str, Tensor], counts: Counter[str], watched: Watched | None) -> None:
        """Take a large batch's losses and counts into the epoch's; a loss that is no number ends the run."""
        losses = {name: float(value) for name, value in sums.items()}
        for name, loss in losses.items():
            if not math.isfinite(loss):
                self.stop_at_broken_loss(name, loss)
        self.position.add_losses(losses, counts)
        if watched is not None:
            sizes = [int(size) for size in watched.cluster_sizes]
            self.position.add_clusters(sizes, float(watched.confident), float(watched.linked))

    def stop_at_broken_loss(self, name: str, value: float) -> NoReturn:
        path = self.write_snapshot()
        where = f"The last good checkpoint is {path}." if path else "No checkpoint was kept."
        raise UserError(
            f"{name} became {value} in epoch {self.position.epoch + 1}, so training stopped. {where} "
            "Lower the learning rate, for example learning_rate = 0.0001."
        )

    def done(self) -> float:
        """Share of the run that is done; brings the clock up to date."""
        self.position.seconds = self.seconds()
        return share_done(self.position, self.config, len(self.loader), self.loader.batches)

    def is_out_of_time(self) -> bool:
        """Whether a budget of minutes is used up."""
        budget = self.config.budget_minutes
        return budget is not None and self.seconds() >= 60 * budget

    def seconds(self) -> float:
        """Of training so far; where they decide anything, the first worker's clock is that of all."""
        seconds = self.clock.seconds
        return seconds if self.config.budget_minutes is None else self.learner.workers.same(seconds)

    def progress(self, record: Record | None) -> Progress:
        # Only the first worker comes here, so nothing may be asked of the others: the clock is as of the last batch.
        position, batches = self.position, self.loader.batches
        done = share_done(position, self.config, len(self.loader), batches)
        return Progress(
            epoch=record["epoch"] if record else position.epoch + 1,
            epochs=None if self.config.has_budget else self.config.epochs,
            batch=batches if record else position.batch,
            batches=batches,
            done=min(1.0, done),
            passes=position.images / len(self.loader),
            images_per_second=(position.images - self.images_before) / max(self.clock.seconds_here, 1e-9),
            seconds_left=max(0.0, position.seconds / max(done, 1e-9) - position.seconds),
            means=record or position.means(),
            record=record,
        )

    def take_snapshot(self) -> None:
        """Copy all state at the border of a large batch, where a run can go on exactly; write it when it is time."""
        self.done()  # Brings the clock up to date.
        if self.checkpoints is None:  # Nobody would ever see it.
            return
        tensors = {f"method.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        for name, optimizer in self.learner.optimizers.items():
            tensors |= optimizer_tensors(f"optimizer.{name}", optimizer)
        copies = {name: tensor.detach().clone(memory_format=torch.preserve_format) for name, tensor in tensors.items()}
        snapshot = Checkpoint(copies, deepcopy(self.position))
        if all(bool(tensor.isfinite().all()) for tensor in copies.values()):
            self.snapshot = snapshot
        if time.monotonic() - self.last_written > 60 * self.config.checkpoint_minutes:
            self.write_snapshot()

    def write_snapshot(self) -> str | None:
        """Write the last sound snapshot as a checkpoint; its path, if checkpoints are wanted."""
        if self.checkpoints is None or self.snapshot is None or not self.learner.workers.writes:
            return None
        self.last_written = time.monotonic()
        place = self.snapshot.position
        number = place.epoch * self.loader.batches + place.batch
        return str(self.checkpoints.save(number, self.snapshot))

    def load(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint's state."""
        tensors = checkpoint.tensors
        method = {name[len("method.") :]: value for name, value in tensors.items() if name.startswith("method.")}
        try:
            self.learner.load_state_dict(method)
            for name, optimizer in self.learner.optimizers.items():
                load_optimizer(f"optimizer.{name}", optimizer, tensors)
            self.position = deepcopy(checkpoint.position)
        except (RuntimeError, TypeError, KeyError, IndexError, ValueError) as error:
            raise UserError(
                "The checkpoint belongs to another kind of run: its weights or fields do not fit. "
                "Resume with the settings it was begun with, or choose a new output folder."
            ) from error
        self.clock = Clock(self.position.seconds)
        self.images_before = self.position.images
