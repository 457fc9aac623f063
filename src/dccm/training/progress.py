"""What a run tells about itself while it is under way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
"""An epoch in the history: losses, cluster sizes, shares, warnings."""


@dataclass(frozen=True)
class Progress:
    """What a progress display can show after each large batch."""

    epoch: int
    epochs: int | None
    """Epochs in all; None when a budget decides."""
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
    """What a progress display can show of work without epochs."""

    what: str
    done: float
    """Share of it, 0 to 1."""


OnProgress = Callable[[Progress | Stage], None]
"""Called after each large batch, or as a stage gets on."""


def ignore(_: Progress | Stage) -> None:
    """Nobody watches."""
