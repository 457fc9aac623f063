"""Who makes the runs of a grid: processes of this machine, or those of a Ray cluster."""

import os
import signal
import time
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Protocol

from dccm.errors import choose
from dccm.experiments.targets import Need
from dccm.experiments.worker import Outcome, Work, do
from dccm.processes import context, end_with_parent, join_cluster

ENGINES = ("processes", "ray")
_MODULES = (
    "dccm.commands.reproduce", "torch._dynamo", "sklearn.cluster", "sklearn.datasets", "sklearn.decomposition",
    "scipy.optimize", "pyarrow.parquet",
)  # fmt: skip
"""Imported once for all processes: optimizers import the second, which takes longer than a short run."""
_PATIENCE = 0.5
"""Seconds to wait for news."""
_SECONDS_TO_END = 60.0
"""For a checkpoint, before a process that was asked to end is made to."""


class Message(NamedTuple):
    """News of a run."""

    key: str
    done: float = 0.0
    seconds_left: float | None = None
    outcome: Outcome | None = None
    """Once it has ended."""


class Engine(Protocol):
    """Makes runs beside each other."""

    at_once: int
    """Runs that it makes at a time."""

    def start(self, need: Need) -> None:
        """Begin to make a run."""

    def messages(self) -> list[Message]:
        """News since the last call; waits a moment if there are none."""

    def stop(self) -> None:
        """End all runs, as checkpoints, and wait for that."""


def new_engine(name: str, work: Work, jobs: int) -> Engine:
    """An engine by name."""
    choose(name, ENGINES, "engine", "dccm reproduce --help")
    return Processes(work, jobs) if name == "processes" else RayCluster(work, jobs)


class Processes:
    """A process for each run: its memory is its own, and if it is killed the others go on.

    Args:
        work: What all runs have in common.
        jobs: Processes at a time.
    """

    def __init__(self, work: Work, jobs: int) -> None:
        self.work, self.at_once = work, jobs
        self._context = context(_MODULES)
        self._running: dict[str, tuple[Any, Connection]] = {}

    def start(self, need: Need) -> None:
        """Begin to make a run in a new process."""
        mine, its = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_in_process, args=(self.work, need, its))  # type: ignore[attr-defined]
        process.start()
        its.close()
        self._running[need.spec.key] = (process, mine)

    def messages(self) -> list[Message]:
        """What the processes sent, and who of them has ended."""
        ready = wait([pipe for _, pipe in self._running.values()], _PATIENCE)
        return [self._message(key, pipe) for key, (_, pipe) in list(self._running.items()) if pipe in ready]

    def _message(self, key: str, pipe: Connection) -> Message:
        try:
            message: Message = pipe.recv()
        except (EOFError, OSError):  # It ended without a word.
            process, _ = self._running[key]
            process.join()
            message = Message(key, outcome=_died(process.exitcode))
        if message.outcome is not None:
            self._running.pop(key)[0].join()
        return message

    def stop(self) -> None:
        """Ask all processes to write a checkpoint and end."""
        processes = [process for process, _ in self._running.values()]
        for process in processes:
            if process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        for process in processes:
            process.join(_SECONDS_TO_END)
            process.kill()
        self._running.clear()


def _died(code: int | None) -> Outcome:
    how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
    return Outcome("failed", f"The process {how}; it may have needed more memory than there is.")


def _in_process(work: Work, need: Need, pipe: Connection) -> None:
    """What a process does: one run, and no longer than the one that began it."""
    import torch

    end_with_parent()
    if work.threads is not None:
        torch.set_num_threads(work.threads)
    key, told = need.spec.key, float("-inf")

    def tell(done: float, seconds_left: float | None) -> None:
        nonlocal told
        if time.monotonic() - told > _PATIENCE:
            told = time.monotonic()
            pipe.send(Message(key, done, seconds_left))

    pipe.send(Message(key, 1.0, outcome=do(work, need, tell)))


class RayCluster:
    """Runs as tasks of a Ray cluster, whose machines all see the results folder and the data.

    Args:
        work: What all runs have in common.
        jobs: Runs at a time; 1 leaves it to the cluster.
    """

    def __init__(self, work: Work, jobs: int) -> None:
        self._ray = join_cluster()
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        self.at_once = jobs if jobs > 1 else max(1, processors)
        self._work = self._ray.put(work)
        self._task = self._ray.remote(max_calls=1)(_in_ray)  # A process for each run, whose memory is its own.
        self._running: dict[Any, str] = {}

    def start(self, need: Need) -> None:
        """Hand a run to the cluster."""
        self._running[self._task.remote(self._work, need)] = need.spec.key

    def messages(self) -> list[Message]:
        """Which runs have ended."""
        ready, _ = self._ray.wait(list(self._running), timeout=_PATIENCE)
        return [self._message(task) for task in ready]

    def _message(self, task: Any) -> Message:
        key = self._running.pop(task)
        try:
            return Message(key, 1.0, outcome=self._ray.get(task))
        except Exception as error:  # Ray raises what its machines raise.
            return Message(key, outcome=Outcome("failed", f"Ray could not make it: {error}"))

    def stop(self) -> None:
        """Cancel all runs; they go on from their last checkpoint."""
        for task in self._running:
            self._ray.cancel(task)
        self._running.clear()


def _in_ray(work: Work, need: Need) -> Outcome:
    return do(work, need, _tell_nobody)


def _tell_nobody(done: float, seconds_left: float | None) -> None:
    """Tasks of Ray say nothing before they end."""
