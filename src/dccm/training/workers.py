"""The processes that train together. Whatever must be divided, brought together or done only once goes through here."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

_Value = TypeVar("_Value")


class LostWorkerError(Exception):
    """Another process does not answer any more."""


class Place(NamedTuple):
    """Worker number `rank` of so many; of the rows of a batch it has every such one, from that number on."""

    rank: int
    of: int


class Workers:
    """A single process: it has all images, there is nothing to average, and it writes all files.

    With several, everything that is not said to be divided is done by each of them, with the same result. A tensor of
    which each has its own rows, or its own part of a sum, is called divided; all others are the same everywhere.
    """

    place = Place(0, 1)

    @property
    def writes(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.place.rank == 0

    def own_rows(self, count: int, before: int = 0) -> slice:  # noqa: ARG002
        """Which of so many rows, that lie behind others in a batch, this process takes through a network."""
        return slice(None)

    def handed(self, value: Tensor) -> Tensor:
        """What all have, for a computation that is divided."""
        return value

    def total(self, value: Tensor) -> Tensor:
        """The sum of a value that each has a part of; `average` makes it so."""
        return value

    def average(self, optimizer: torch.optim.Optimizer, values: Sequence[Tensor] = ()) -> None:
        """Replace the gradients of an optimizer's weights, and some numbers, by their mean over all workers."""

    def same(self, value: _Value) -> _Value:
        """What the first worker says, for what workers may see differently, such as the time."""
        return value

    def same_state(self, tensors: Callable[[], dict[str, Tensor]]) -> None:
        """Give all workers the first one's state, in place, should machines compute it differently."""

    def agree(self, **noted: Any) -> None:
        """Wait until all have come this far; refuse to go on if one could not, or if what they note differs."""

    @contextmanager
    def training(self) -> Iterator[None]:
        """Nobody waits long for another one here."""
        yield

    def part(self) -> None:
        """Wait until all have come to the end."""


ALONE = Workers()
