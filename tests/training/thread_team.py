"""Workers that are threads of one process, for tests: they compute what processes would, without their start."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from dccm.training.together import SeveralWorkers
from dccm.training.workers import Place

_Made = TypeVar("_Made")


class ThreadTeam:
    """One of some threads that meet at a barrier."""

    def __init__(self, rank: int, seats: list[Tensor | None], barrier: threading.Barrier) -> None:
        self.place = Place(rank, len(seats))
        self.seats, self.barrier = seats, barrier

    def gather(self, tensor: Tensor) -> list[Tensor]:
        self.seats[self.place.rank] = tensor.detach().clone()
        self.barrier.wait(60)
        found = [seat.clone() for seat in self.seats if seat is not None]
        self.barrier.wait(60)
        assert len({seat.shape for seat in found}) == 1
        return found

    def add_up(self, tensor: Tensor) -> None:
        tensor.copy_(torch.stack(self.gather(tensor)).sum(dim=0))

    def send(self, tensor: Tensor) -> None:
        tensor.copy_(self.gather(tensor)[0])


def together(count: int, work: Callable[[SeveralWorkers], _Made]) -> list[_Made]:
    """What each of so many workers makes, at the same time."""
    seats: list[Tensor | None] = [None] * count
    barrier = threading.Barrier(count)

    def one(rank: int) -> _Made:
        try:
            return work(SeveralWorkers(ThreadTeam(rank, seats, barrier)))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(one, rank) for rank in range(count)]
        errors = [future.exception() for future in futures]
    for error in sorted(
        (error for error in errors if error), key=lambda e: isinstance(e, threading.BrokenBarrierError)
    ):
        raise error
    return [future.result() for future in futures]
