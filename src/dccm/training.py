"""The only loop. A method yields its updates; the loop takes no labels, so neither can peek at them."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from dccm import collapse
from dccm.checkpoint import CheckpointFolder, TensorFile, load_optimizer, optimizer_tensors
from dccm.collapse import Health, Watched
from dccm.config import TrainingConfig
from dccm.data.loader import Batch, Loader
from dccm.errors import UserError

Record = dict[str, Any]


@dataclass(frozen=True)
class Update:
    """One step of one optimizer."""

    loss: Tensor
    optimizer: torch.optim.Optimizer
    images: int
    """Images in the mini-batch; they add up to gradient passes."""
    terms: Mapping[str, Tensor] = field(default_factory=dict)
    """The loss by its parts, for the history."""
    watched: Watched | None = None
    """State of the clusters, from methods that have some; once a large batch."""


class Moment(NamedTuple):
    """Where a run stands when an epoch begins."""

    epoch: int
    """From 0."""
    done: float
    """Share of the run, by which stages fit themselves to epochs and budgets alike."""


class Learner(Protocol):
    """What the loop needs of a method: a torch module with optimizers and updates."""

    @property
    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """The optimizers by name."""

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """Renew targets that span the whole data set."""

    def updates(self, batch: Batch) -> Iterator[Update]:
        """The losses to step on for one large batch, one after the other."""

    def state_dict(self) -> dict[str, Tensor]:
        """All weights and buffers."""

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> Any:
        """Put back what `state_dict` gave."""

    def train(self, mode: bool = True) -> Any:
        """Switch to training."""


@dataclass
class Position:
    """How far a run is; together with the weights it decides everything that follows."""

    epoch: int = 0
    batch: int = 0
    images: int = 0
    """Images in all updates so far."""
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    """Losses and counts of the epoch under way."""
    updates: dict[str, int] = field(default_factory=dict)
    """How many updates had each of the losses."""
    cluster_sizes: list[int] = field(default_factory=list)
    history: list[Record] = field(default_factory=list)


@dataclass(frozen=True)
class Progress:
    """What a progress display can show after each large batch."""

    epoch: int
    epochs: int | None
    """Epochs in all; none when a budget decides."""
    batch: int
    batches: int
    done: float
    """Share of the whole run, 0 to 1."""
    passes: float
    """Gradient passes over the images so far."""
    images_per_second: float
    seconds_left: float
    means: Mapping[str, float]
    """Losses and shares of the epoch under way."""
    record: Record | None
    """The epoch's record, when it is complete."""


@dataclass(frozen=True)
class Stage:
    """What a progress display can show of a method without epochs."""

    what: str
    done: float
    """Share of it, 0 to 1."""


Report = Callable[[Progress | Stage], None]


class InterruptedRunError(Exception):
    """The user ended the run; `checkpoint` names where it goes on, if it was written."""

    def __init__(self, checkpoint: str | None) -> None:
        super().__init__("interrupted")
        self.checkpoint = checkpoint


def train(
    learner: Learner,
    loader: Loader,
    config: TrainingConfig,
    *,
    checkpoints: CheckpointFolder | None = None,
    resume: TensorFile | None = None,
    report: Callable[[Progress], None] | None = None,
) -> list[Record]:
    """Run the updates of a method until its epochs or its budget are used up.

    Args:
        learner: The method.
        loader: Its images.
        config: Length, schedule and seed of the run.
        checkpoints: Where to write checkpoints; none: nowhere.
        resume: A checkpoint of the same run to go on from.
        report: Called after each large batch.

    Returns:
        The history, one record an epoch.
    """
    run = _Run(learner, loader, config, checkpoints)
    if resume is not None:
        run.load(resume)
    try:
        run.to_the_end(report)
    except KeyboardInterrupt:
        raise InterruptedRunError(run.write_snapshot()) from None
    return run.position.history


def computed_in(precision: str, updates: Iterator[Update], device: torch.device) -> Iterator[Update]:
    """A learner's updates, their losses computed in the wanted precision; steps are not."""
    while True:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            update = next(updates, None)
        if update is None:
            return
        yield update


class _Run:
    """The state of one call of `train`."""

    def __init__(
        self, learner: Learner, loader: Loader, config: TrainingConfig, checkpoints: CheckpointFolder | None
    ) -> None:
        self.learner, self.loader, self.config, self.checkpoints = learner, loader, config, checkpoints
        self.position = Position()
        self.started = time.monotonic()
        self.seconds_before = 0.0
        self.images_before = 0
        self.last_written = self.started
        self.snapshot: TensorFile | None = None

    def to_the_end(self, report: Callable[[Progress], None] | None) -> None:
        position = self.position
        while self.done() < 1:
            if position.batch == 0:
                self.learner.before_epoch(self.loader, Moment(position.epoch, self.done()))
            for batch in self.loader.shuffled(position.epoch, position.batch):
                self.take_snapshot()
                self.learn_from(replace(batch, done=min(1.0, self.done())))
                position.batch += 1
                over = self.done() >= 1
                complete = position.batch == self.loader.batches or over
                record = self.close_epoch() if complete else None
                if report is not None:
                    self.show(report, record)
                if over:
                    break
        self.take_snapshot()
        self.write_snapshot()

    def show(self, report: Callable[[Progress], None], record: Record | None) -> None:
        """Report progress; the clock counts training, not the time that others spend on showing it."""
        before = time.monotonic()
        report(self.progress(record))
        self.started += time.monotonic() - before

    def learn_from(self, batch: Batch) -> None:
        """All updates of one large batch; values are read only at its end, so that nothing waits for them before."""
        self.learner.train()
        self.set_learning_rates()
        sums: dict[str, Tensor] = {}
        counts: Counter[str] = Counter()
        watched = None
        for update in computed_in(self.config.precision, iter(self.learner.updates(batch)), batch.images.device):
            update.optimizer.zero_grad(set_to_none=True)
            update.loss.backward()
            update.optimizer.step()
            for name, value in ({"loss": update.loss} | dict(update.terms)).items():
                sums[name] = sums.get(name, 0) + value.detach()
                counts[name] += 1
            self.position.images += update.images
            watched = update.watched or watched
        self.add(sums, counts, watched)

    def add(self, sums: dict[str, Tensor], counts: Counter[str], watched: Watched | None) -> None:
        """Take a large batch's losses and counts into the epoch's; a loss that is no number ends the run."""
        totals = self.position.sums
        for name, value in sums.items():
            number = float(value)
            if not math.isfinite(number):
                self.stop_at_broken_loss(name, number)
            totals[name] = totals.get(name, 0.0) + number
        self.position.updates = dict(counts + Counter(self.position.updates))
        if watched is not None:
            sizes = [int(size) for size in watched.cluster_sizes]
            known = self.position.cluster_sizes or [0] * len(sizes)
            self.position.cluster_sizes = [old + new for old, new in zip(known, sizes, strict=True)]
            totals["confident"] = totals.get("confident", 0.0) + float(watched.confident)
            totals["linked"] = totals.get("linked", 0.0) + float(watched.linked)

    def stop_at_broken_loss(self, name: str, value: float) -> None:
        path = self.write_snapshot()
        where = f"The last good checkpoint is {path}." if path else "No checkpoint was kept."
        raise UserError(
            f"{name} became {value} in epoch {self.position.epoch + 1}, so training stopped. {where} "
            "Lower the learning rate, for example --set learning_rate=0.0001."
        )

    def means(self) -> dict[str, float]:
        """Mean losses and shares of the epoch so far."""
        sums, batches = self.position.sums, max(1, self.position.batch)
        values = {name: sums[name] / count for name, count in self.position.updates.items()}
        if self.position.cluster_sizes:
            values["confident_share"] = sums["confident"] / sum(self.position.cluster_sizes)
            values["linked_share"] = sums["linked"] / batches
        return values

    def close_epoch(self) -> Record:
        """Write the epoch's record into the history and begin the next one."""
        position = self.position
        means = self.means()
        record: Record = {"epoch": position.epoch + 1, "passes": position.images / len(self.loader)} | means
        if position.cluster_sizes:
            health = Health(position.cluster_sizes, means["confident_share"], means["linked_share"])
            record |= health.record() | {"warnings": collapse.warnings(health, position.epoch + 1)}
        position.history.append(record)
        position.epoch += 1
        position.batch, position.sums, position.updates, position.cluster_sizes = 0, {}, {}, []
        return record

    def done(self) -> float:
        """Share of the run that is done: of its budget, the tighter one if it has two, or else of its epochs."""
        position, config = self.position, self.config
        position.seconds = self.seconds_before + time.monotonic() - self.started
        shares = []
        if config.budget_minutes is not None:
            shares.append(position.seconds / 60 / config.budget_minutes)
        if config.budget_passes is not None:
            shares.append(position.images / len(self.loader) / config.budget_passes)
        return max(shares, default=(position.epoch + position.batch / self.loader.batches) / config.epochs)

    def set_learning_rates(self) -> None:
        factor = 1.0
        if self.config.schedule == "cosine":
            factor = 0.5 * (1 + math.cos(math.pi * min(1.0, self.done())))
        for optimizer in self.learner.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor

    def progress(self, record: Record | None) -> Progress:
        position, done = self.position, self.done()
        seconds = time.monotonic() - self.started
        batches = self.loader.batches
        return Progress(
            epoch=record["epoch"] if record else position.epoch + 1,
            epochs=None if self.config.has_budget else self.config.epochs,
            batch=batches if record else position.batch,
            batches=batches,
            done=min(1.0, done),
            passes=position.images / len(self.loader),
            images_per_second=(position.images - self.images_before) / max(seconds, 1e-9),
            seconds_left=max(0.0, position.seconds / max(done, 1e-9) - position.seconds),
            means=record or self.means(),
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
        snapshot = TensorFile(copies, asdict(self.position))
        if all(bool(tensor.isfinite().all()) for tensor in copies.values()):
            self.snapshot = snapshot
        if time.monotonic() - self.last_written > 60 * self.config.checkpoint_minutes:
            self.write_snapshot()

    def write_snapshot(self) -> str | None:
        """Write the last sound snapshot as a checkpoint; its path, if checkpoints are wanted."""
        if self.checkpoints is None or self.snapshot is None:
            return None
        self.last_written = time.monotonic()
        place = self.snapshot.document
        number = place["epoch"] * self.loader.batches + place["batch"]
        return str(self.checkpoints.save(number, self.snapshot))

    def load(self, checkpoint: TensorFile) -> None:
        """Go back to a checkpoint's state."""
        tensors = checkpoint.tensors
        method = {name[len("method.") :]: value for name, value in tensors.items() if name.startswith("method.")}
        try:
            self.learner.load_state_dict(method)
            for name, optimizer in self.learner.optimizers.items():
                load_optimizer(f"optimizer.{name}", optimizer, tensors)
            self.position = Position(**checkpoint.document)
        except (RuntimeError, TypeError, KeyError, IndexError) as error:
            raise UserError(
                "The checkpoint belongs to another kind of run: its weights or fields do not fit. "
                "Resume with the settings it was begun with, or choose a new output folder."
            ) from error
        self.seconds_before, self.images_before = self.position.seconds, self.position.images
