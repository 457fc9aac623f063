"""Several starts of one method that learn side by side; without any label, the one that tells most of the images stays.

For methods that learn features and clusters together: a good part of their single runs joins two classes early, and
never parts them again. It shows in what the predictions tell (`collapse.cluster_information`).
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from dccm.collapse import cluster_information
from dccm.data.loader import Batch, Loader, equal_parts, images_at_once
from dccm.methods.base import GradientMethod
from dccm.networks.encoder import Encoder
from dccm.training import Update

_NEW_SHARE = 0.2
"""Weight of a large batch in the running mean by which starts are compared."""
_FIRST_DROP, _LAST_DROP = 0.6, 0.8
"""Shares of the run between which starts are dropped: before, good ones cannot be told from bad ones yet."""


class Start(nn.Module):
    """Networks that learn together.

    Args:
        encoder: The one that predicts.
        others: By name.
    """

    def __init__(self, encoder: Encoder, **others: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        for name, network in others.items():
            self.add_module(name, network)


def still_running(starts: int, done: float) -> int:
    """How many starts go on: all, then one less at equal distances from 60 % to 80 % of the run, until one is left."""
    if starts == 1 or done < _FIRST_DROP:
        return starts
    dropped = 1 + int((done - _FIRST_DROP) * (starts - 1) / (_LAST_DROP - _FIRST_DROP))
    return max(1, starts - dropped)


class SeveralStarts(GradientMethod):
    """A method that learns with one or several starts; `begin` is called with them."""

    def begin(self, starts: list[Start], kind: type[torch.optim.Optimizer], learning_rate: float) -> None:
        """Take the starts, each with an optimizer of its own."""
        self.starts = nn.ModuleList(starts)
        # What each start's predictions told of the images, as a running mean, and which one answers.
        self.told: Tensor
        self.answering: Tensor
        self.register_buffer("told", torch.zeros(len(starts)))
        self.register_buffer("answering", torch.zeros((), dtype=torch.long))
        self.optimizers = {
            f"start{number}": kind(start.parameters(), lr=learning_rate)  # type: ignore[call-arg]
            for number, start in enumerate(starts)
        }

    @abstractmethod
    def learn(
        self, start: Start, batch: Batch, prediction: Tensor, optimizer: torch.optim.Optimizer
    ) -> Iterator[Update]:
        """The updates of one start for one large batch.

        Args:
            start: Its networks.
            batch: The images.
            prediction: What its encoder says of them, clean, (B, K); no gradient.
            optimizer: Of this start.
        """

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Each start for itself; the first one's clusters are watched."""
        running = self.told.topk(still_running(len(self.starts), batch.done)).indices.tolist()
        for number in running:
            start = self.starts[number]
            assert isinstance(start, Start)
            prediction = _predicted(start.encoder, batch.images)
            self.told[number].lerp_(cluster_information(prediction), _NEW_SHARE)
            for update in self.learn(start, batch, prediction, self.optimizers[f"start{number}"]):
                yield update if number == running[0] else replace(update, watched=None)
        self._choose(running)

    def _choose(self, running: list[int]) -> None:
        """Let the start answer that tells most; those that were dropped cannot come back."""
        dropped = torch.ones_like(self.told, dtype=torch.bool)
        dropped[running] = False
        self.told.masked_fill_(dropped, -1)
        self.answering.copy_(self.told.argmax())

    @property
    def encoder(self) -> Encoder:
        """The encoder that answers."""
        encoder = self.starts[int(self.answering)].encoder
        assert isinstance(encoder, Encoder)
        return encoder

    def predict(self, images: Tensor) -> Tensor:
        """The prediction feature z."""
        prediction: Tensor = self.encoder(images).prediction
        return prediction

    def compile_networks(self) -> None:
        """Let torch.compile rewrite the networks of each start."""
        for start in self.starts:
            for network in start.children():
                network.compile()

    def finish(self, loader: Loader) -> None:
        """Statistics for batch norm; of several starts only the one that answers is of further use."""
        super().finish(loader)
        chosen = int(self.answering)
        self.starts, self.told = nn.ModuleList([self.starts[chosen]]), self.told[chosen : chosen + 1]
        self.answering.zero_()

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: object) -> None:
        """Take a finished model, which has one start left, as well as a run under way."""
        stored = state_dict.get(f"{prefix}told")
        if stored is not None and len(stored) == 1:
            self.starts, self.told = self.starts[:1], self.told[:1]
        super()._load_from_state_dict(state_dict, prefix, *rest)


@torch.no_grad()
def _predicted(encoder: Encoder, images: Tensor) -> Tensor:
    """Predictions of a large batch, in pieces of bounded size: all at once large images would take gigabytes."""
    pieces = equal_parts(len(images), images_at_once(*images.shape[2:], statistics=True))
    return torch.cat([encoder(piece).prediction for piece in images.tensor_split(pieces)])
