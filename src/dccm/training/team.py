"""Processes that torchrun started, connected: how they begin together, notice that one is lost, and end together."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dccm.errors import UserError, require
from dccm.launched import JointError, Launched, launched, leave
from dccm.training.agreement import Agreeing
from dccm.training.workers import ALONE, LostWorkerError, Place, Workers

_PATIENCE = timedelta(hours=1)
"""How long processes wait for each other where one may be reading images, or writing the result."""
_SECONDS = 25.0
"""How long one waits for the others in the middle of training: who does not answer then is lost."""
SECONDS = "DCCM_WORKER_SECONDS"
"""Environment variable for another number of these seconds."""
_CONNECTING = timedelta(seconds=120)
"""How long a process waits until all others were started."""
_OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"

_joined = 0
"""How often processes were connected; each time has names of its own in their common store."""


class ProcessTeam:
    """Processes connected by torch.distributed.

    Args:
        told: Who this one is.
        store: Where processes find each other.
    """

    def __init__(self, told: Launched, store: Any) -> None:
        self.place = Place(told.rank, told.processes)
        self.store = store
        seconds = timedelta(seconds=float(os.environ.get(SECONDS, _SECONDS)))
        with _lost():
            self.quick = dist.new_group(timeout=seconds)
            self.patient = dist.new_group(timeout=_PATIENCE)
        self.group = self.patient

    @contextmanager
    def quickly(self) -> Iterator[None]:
        """Do not wait long for the others."""
        self.group = self.quick
        try:
            yield
        finally:
            self.group = self.patient

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of each."""
        found = [torch.empty_like(tensor) for _ in range(self.place.of)]
        with _lost():
            dist.all_gather(found, tensor, group=self.group)
        return found

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by the sum of those of all."""
        with _lost():
            dist.all_reduce(tensor, group=self.group)

    def send(self, tensor: Tensor) -> None:
        """Replace a tensor by that of the first."""
        with _lost():
            dist.broadcast(tensor, 0, group=self.group)

    def speaks(self) -> bool:
        """Whether this process is the first to have something to say at the end."""
        with suppress(RuntimeError):  # The process that held the store may be gone.
            return bool(self.store.compare_set("last word", "", str(self.place.rank)).decode() == str(self.place.rank))
        return True


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # Whatever a closed connection or a timeout is called.
        raise LostWorkerError(str(error)) from error


@contextmanager
def _patient_threads() -> Iterator[None]:
    """Threads that begin here wait for a free processor when they wake, instead of taking that of another.

    A thread of gloo that takes the processor of one which is just about to send waits for the same lock, and tries it
    again and again until its turn is over: up to three milliseconds for a message that takes a tenth of one.
    """
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield
        return
    with suppress(OSError):  # Where it may not be said, messages are slower.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def joined() -> Iterator[Workers]:
    """The processes of this command, until all of it is done: this one alone, unless torchrun started it.

    Whatever ends one of them ends all, and one of them says why.
    """
    told = launched()
    if told is None:
        yield ALONE
        return
    workers = None
    try:
        with _patient_threads():
            workers = _connected(told)
            yield workers
    except LostWorkerError:
        raise SystemExit(1) from None  # torchrun replaces all; who is to blame has said so.
    except UserError as error:
        if workers is None:
            raise
        reason, told_by_all = workers.tell(str(error))
        if (not told.rank) if told_by_all else workers.patient_team.speaks():
            raise JointError(reason) from error
        leave()
    else:
        dist.destroy_process_group()


def _connected(told: Launched) -> Agreeing:
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    global _joined
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    require(
        told.machines == 1 or not shared,
        f"{_OWN_STORE} must be 1 in the environment of torchrun on every machine, as processes that replace lost ones "
        f"would find the addresses of those, and it is not. Begin again with: {_OWN_STORE}=1 torchrun ...",
    )
    if torch.cuda.is_available():
        torch.cuda.set_device(told.local_rank % torch.cuda.device_count())
    _joined += 1
    with _lost():
        store, _, _ = next(rendezvous("env://", timeout=_CONNECTING))
        # A store that outlives processes is of one machine: others would count restarts differently.
        named = PrefixStore(f"dccm/{told.restarts if shared else 0}/{_joined}", store)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        given: dict[str, Any] = {"rank": told.rank, "world_size": told.processes, "timeout": _CONNECTING}
        dist.init_process_group(backend, store=named, **given)
        return Agreeing(ProcessTeam(told, named), told)
