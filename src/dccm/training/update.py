"""What a method gives the loop: one loss and one optimizer at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from dccm.data.loader import Batch, Loader
from dccm.training.collapse import Watched
from dccm.training.workers import Workers


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
    """State of the clusters, from methods that have some; one per large batch."""

    def step(self, workers: Workers) -> None:
        """Let the optimizer follow the gradient of the loss, averaged over all workers as the loss itself is."""
        self.optimizer.zero_grad(set_to_none=True)
        self.loss.backward()
        workers.average(self.optimizer, [self.loss, *self.terms.values()])
        self.optimizer.step()


class Moment(NamedTuple):
    """Where a run stands when an epoch begins."""

    epoch: int
    """From 0."""
    done: float
    """Share of the run, by which stages fit themselves to epochs and budgets alike."""


class Learner(Protocol):
    """What the loop needs of a method: a torch module with optimizers and updates."""

    workers: Workers
    """The processes that train together."""

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


def computed_in(precision: str, updates: Iterator[Update], device: torch.device) -> Iterator[Update]:
    """A learner's updates, their losses computed in the wanted precision; steps are not."""
    while True:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            update = next(updates, None)
        if update is None:
            return
        yield update
