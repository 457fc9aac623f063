"""Several starts of one method that learn side by side; without any label, the one that tells most of the images stays.

For methods that learn features and clusters together: a good part of their single runs joins two classes early, and
never parts them again. This shows in what the predictions tell (`collapse.cluster_information`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dccm.data.loader import Batch, Loader
from dccm.methods.base import GradientMethod, encoder_of
from dccm.networks.base import Encoder
from dccm.training.update import Moment, Update

_NEW_SHARE = 0.2
"""Weight of a large batch in the running mean by which starts are compared."""
_FIRST_DROP, _LAST_DROP = 0.6, 0.8
"""Shares of the run between which starts are dropped: earlier, good ones cannot be told from bad ones yet."""


def still_running(starts: int, done: float) -> int:
    """How many starts go on: all, then one less at equal distances from 60 % to 80 % of the run, until one is left."""
    if starts == 1 or done < _FIRST_DROP:
        return starts
    dropped = 1 + int((done - _FIRST_DROP) * (starts - 1) / (_LAST_DROP - _FIRST_DROP))
    return max(1, starts - dropped)


class SeveralStarts(GradientMethod[Any]):
    """Complete methods that differ in their first weights, as one method.

    Args:
        starts: The methods; their updates tell of the state of their clusters.
    """

    networks = ()  # Each start has its own.

    def __init__(self, starts: Sequence[GradientMethod[Any]]) -> None:
        super().__init__(starts[0].shape, starts[0].n_clusters, starts[0].config)
        self.starts = nn.ModuleList(starts)
        # What each start's predictions told of the images, as a running mean, and which one answers.
        self.told: Tensor
        self.answering: Tensor
        self.register_buffer("told", torch.zeros(len(starts)))
        self.register_buffer("answering", torch.zeros((), dtype=torch.long))

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Those of all starts."""
        return {
            f"start{number}.{name}": optimizer
            for number in range(len(self.starts))
            for name, optimizer in self._start(number).optimizers.items()
        }

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """Each start for itself."""
        for number in range(len(self.starts)):
            self._start(number).before_epoch(loader, moment)

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Each start for itself; the first one's clusters are watched."""
        running = self.told.topk(still_running(len(self.starts), batch.done)).indices.tolist()
        for number in running:
            told = None
            for update in self._start(number).updates(batch):
                assert update.watched is not None, "Starts are compared by the state of their clusters."
                told = update.watched.information
                yield update if number == running[0] else replace(update, watched=None)
            if told is not None:
                self.told[number].lerp_(told, _NEW_SHARE)
        self._choose(running)

    def _choose(self, running: list[int]) -> None:
        """The start that tells most answers; those that were dropped cannot come back."""
        dropped = torch.ones_like(self.told, dtype=torch.bool)
        dropped[running] = False
        self.told.masked_fill_(dropped, -1)
        self.answering.copy_(self.told.argmax())

    def _start(self, number: int) -> GradientMethod[Any]:
        start = self.starts[number]
        assert isinstance(start, GradientMethod)
        return start

    @property
    def best(self) -> GradientMethod[Any]:
        """The start that answers."""
        return self._start(int(self.answering))

    @property
    def encoder(self) -> Encoder | None:
        """That of the start that answers."""
        return encoder_of(self.best)

    def embed(self, images: Tensor) -> Tensor:
        """The features of the start that answers."""
        return self.best.embed(images)

    def predict(self, images: Tensor) -> Tensor:
        """What the start that answers says."""
        return self.best.predict(images)

    def compile_networks(self) -> None:
        """Let torch.compile rewrite the networks of each start."""
        for number in range(len(self.starts)):
            self._start(number).compile_networks()

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """Only the start that answers is kept."""
        return self.best.finish(loader)
