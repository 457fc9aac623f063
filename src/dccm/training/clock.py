"""How much of a run is done: by its clock, its passes or its epochs; and the learning rate that goes with it."""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from dccm.config import TrainingConfig
from dccm.training.position import Position


class Clock:
    """Counts the seconds of training, not the time that others spend on showing it.

    Args:
        seconds_before: Those before the run was resumed.
    """

    def __init__(self, seconds_before: float = 0.0) -> None:
        self.seconds_before = seconds_before
        self.started = time.monotonic()

    @property
    def seconds_here(self) -> float:
        """Since the run was begun or resumed."""
        return time.monotonic() - self.started

    @property
    def seconds(self) -> float:
        """In all."""
        return self.seconds_before + self.seconds_here

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the clock stand still."""
        before = time.monotonic()
        yield
        self.started += time.monotonic() - before


def share_done(position: Position, config: TrainingConfig, images: int, batches: int) -> float:
    """Share of the run that is done: of its budget, the tighter one if it has two, or else of its epochs.

    Args:
        position: How far it is.
        config: Its epochs and budgets.
        images: In the data set.
        batches: Large batches in an epoch.
    """
    shares = []
    if config.budget_minutes is not None:
        shares.append(position.seconds / 60 / config.budget_minutes)
    if config.budget_passes is not None:
        shares.append(position.images / images / config.budget_passes)
    return max(shares, default=(position.epoch + position.batch / batches) / config.epochs)


def set_learning_rates(optimizers: Iterable[torch.optim.Optimizer], schedule: str, done: float) -> None:
    """Give every optimizer the learning rate of this moment: as it was at the start, or down half a cosine."""
    factor = 0.5 * (1 + math.cos(math.pi * min(1.0, done))) if schedule == "cosine" else 1.0
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor
