"""Several processes as one: what is divided and brought together again, with its gradients.

Every worker computes the whole loss from rows that were brought together, so it knows the true gradient of all that is
not divided. Inside of what is divided, gradients are larger by the number of workers. So the mean over all workers is
the true gradient of every weight, wherever it is used: that of one process, but for the order of additions.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from dccm.data.perturb import suggested_format
from dccm.training.batch_norm import batch_norm
from dccm.training.workers import Place, Workers

_Value = TypeVar("_Value")


class Team(Protocol):
    """What processes need of whatever connects them; all call the same functions in the same order."""

    place: Place

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of each, of equal shapes."""

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by the sum of those of all, which has the same bits everywhere."""

    def send(self, tensor: Tensor) -> None:
        """Replace a tensor by that of the first."""


class SeveralWorkers(Workers):
    """This process as one of several.

    Args:
        team: What connects them.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self.place = team.place
        self.averages = False
        """Whether anything is divided, so that gradients differ."""
        self._inside = False
        self._count = 0

    def divides(self, rows: int) -> bool:
        """Unless it is part of what is divided already, or there are fewer rows than workers."""
        return not self._inside and rows >= self.place.of

    def own_rows(self, count: int, before: int = 0) -> slice:
        """Every so many, as in `own`; all of them where nothing is divided."""
        rank, of = self.place
        return slice((rank - before) % of, None, of) if self.averages and before + count >= of else slice(None)

    @contextmanager
    def dividing(self, count: int) -> Iterator[None]:
        """What is computed here is computed on this worker's rows, of so many in all."""
        self._inside, self._count = True, count
        try:
            yield
        finally:
            self._inside = False

    def norm(self, norm: nn.BatchNorm1d | nn.BatchNorm2d, usual: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """Batch norm, with the statistics of all rows wherever they are.

        Args:
            norm: The layer.
            usual: What it does alone.
            rows: Its input.
        """
        return batch_norm(norm, rows, self.team.add_up) if self._inside and norm.training else usual(rows)

    def on_all(self, compute: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """Compute on all rows from here on, by every worker, where they were divided."""
        if not self._inside:
            return compute(rows)
        whole = self.whole([rows], self._count)[0]
        self._inside = False
        return compute(whole)

    def own(self, rows: Tensor) -> Tensor:
        """Every `count`-th row: clean and perturbed images, which lie behind each other, are divided evenly."""
        return _Own.apply(rows, self)  # type: ignore[no-untyped-call, no-any-return]

    def whole(self, rows: Sequence[Tensor], count: int) -> list[Tensor]:
        """All rows of tensors that are divided."""
        return list(_Whole.apply(self, count, *rows))  # type: ignore[no-untyped-call]

    def handed(self, value: Tensor) -> Tensor:
        """The value itself; its gradient is the sum of what comes back from all."""
        return _Handed.apply(value, self)  # type: ignore[no-untyped-call, no-any-return]

    def total(self, value: Tensor) -> Tensor:
        """What stands for the sum over all workers until they talk next: the mean of it over them is that sum."""
        return value * self.place.of

    def average(self, optimizer: torch.optim.Optimizer, values: Sequence[Tensor] = ()) -> None:
        """All gradients and values in one go."""
        if not self.averages:
            return
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        learnt = [weight for weight in weights if weight.grad is not None]
        # In the order in which they lie in memory, which is copied sooner.
        dense = [_as_it_lies(weight.grad) for weight in learnt if weight.grad is not None]
        numbers = [value.detach().view(1) for value in values]
        if not dense:
            return
        flat = torch.cat([tensor.flatten() for tensor in dense + numbers])
        self.team.add_up(flat)
        flat /= self.place.of
        means = flat.split([tensor.numel() for tensor in dense + numbers])
        for weight, like, mean in zip(learnt, dense, means[: len(learnt)], strict=True):
            found = mean.view(like.shape)
            weight.grad = found if like.shape == weight.shape else found.permute(0, 3, 1, 2)
        for number, mean in zip(numbers, means[len(learnt) :], strict=True):
            number.copy_(mean)

    def same(self, value: _Value) -> _Value:
        """The first worker's number, truth value or text."""
        told: list[_Value] = self.gather_values(value)
        return told[0]

    def same_state(self, tensors: Callable[[], dict[str, Tensor]]) -> None:
        """The first worker's."""
        for _, tensor in sorted(tensors().items()):
            if tensor.numel():
                dense = tensor.detach().flatten().contiguous().clone()
                self.team.send(dense.view(torch.uint8))
                tensor.copy_(dense.view_as(tensor))

    def gather_values(self, value: Any) -> list[Any]:
        """A small value of each worker: numbers, texts, and lists and objects of these."""
        text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        length = max(int(size) for size in self.team.gather(torch.tensor([len(text)])))
        padded = torch.cat([text, text.new_full((length - len(text),), ord(" "))])
        return [json.loads(bytes(found.tolist())) for found in self.team.gather(padded)]

    def all_rows(self, rows: Tensor, count: int) -> Tensor:
        """All rows, (B, ...), of those that are divided; no gradient."""
        most = -(-count // self.place.of)
        missing = rows.new_zeros(most - len(rows), *rows.shape[1:])
        found = self.team.gather(torch.cat([rows, missing]).contiguous())
        return torch.stack(found, dim=1).flatten(0, 1)[:count]


class _Own(torch.autograd.Function):
    """All rows -> this worker's; back: all of the gradient, which each has its rows of."""

    @staticmethod
    def forward(context: Any, rows: Tensor, workers: SeveralWorkers) -> Tensor:
        context.workers, context.count = workers, len(rows)
        context.set_materialize_grads(False)
        return _every(rows, workers.place)

    @staticmethod
    def backward(context: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        workers: SeveralWorkers = context.workers
        if grad_outputs[0] is None:
            return None, None
        return workers.all_rows(grad_outputs[0], context.count) / workers.place.of, None


class _Whole(torch.autograd.Function):
    """Rows that are divided -> all rows; back: this worker's rows of the gradient, which all have."""

    @staticmethod
    def forward(context: Any, workers: SeveralWorkers, count: int, *rows: Tensor) -> tuple[Tensor, ...]:
        context.workers = workers
        context.set_materialize_grads(False)  # What nothing learns from has no gradient, not one of 0.
        wide = [tensor.flatten(1) if tensor.ndim > 1 else tensor.unsqueeze(1) for tensor in rows]
        kind = max((tensor.dtype for tensor in rows), key=lambda dtype: dtype.itemsize)
        found = workers.all_rows(torch.cat([tensor.to(kind) for tensor in wide], dim=1), count)
        parts = found.split([tensor.shape[1] for tensor in wide], dim=1)
        return tuple(
            part.reshape(count, *tensor.shape[1:]).to(tensor.dtype, copy=True)
            for part, tensor in zip(parts, rows, strict=True)
        )

    @staticmethod
    def backward(context: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        workers: SeveralWorkers = context.workers
        own = (None if slope is None else _every(slope, workers.place) * workers.place.of for slope in grad_outputs)
        return (None, None, *own)


class _Handed(torch.autograd.Function):
    """What all have -> the same, for a computation that is divided; back: the sum of all parts."""

    @staticmethod
    def forward(context: Any, value: Tensor, workers: SeveralWorkers) -> Tensor:
        context.workers = workers
        return value.view_as(value)

    @staticmethod
    def backward(context: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        workers: SeveralWorkers = context.workers
        slope = grad_outputs[0].clone(memory_format=torch.contiguous_format)
        workers.team.add_up(slope)
        return slope / workers.place.of, None


def _as_it_lies(tensor: Tensor) -> Tensor:
    """A tensor with the order of axes that it has in memory."""
    last = tensor.ndim == 4 and not tensor.is_contiguous() and suggested_format(tensor) == torch.channels_last
    return tensor.permute(0, 2, 3, 1) if last else tensor


def _every(rows: Tensor, place: Place) -> Tensor:
    chosen = rows[place.rank :: place.of]
    if rows.ndim == 4:
        return chosen.contiguous(memory_format=suggested_format(rows))
    return chosen.contiguous()
