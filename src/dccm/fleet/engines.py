"""Who does the shards: this process, several of this machine, or the machines of a Ray cluster."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any

from dccm.data.sources.shards import Shard
from dccm.errors import UserError, choose
from dccm.fleet.jobs import Job
from dccm.fleet.shard import Done, Worker
from dccm.processes import import_ray, join_cluster, pool_of

ENGINES = ("processes", "ray")
_MODULES = ("dccm.fleet.engines", "torch", "scipy.optimize")
_RESTARTS = 3
"""Times that Ray begins an actor again, or tries a shard again, when a machine is lost."""

_worker: Worker
"""Of a process of its own: it is made once, as reading a model takes seconds."""


def done_by(
    engine: str, job: Job, output: str, shards: Sequence[Shard], processes: int | None, threads: int | None
) -> Iterator[Done]:
    """What becomes of shards, in whatever order they are done.

    Args:
        engine: Of `ENGINES`.
        job: What is done to each.
        output: Where results are put.
        shards: All that is to be done.
        processes: At work beside each other; None: one, or with Ray as many as there are processors, or GPUs.
        threads: That decode, of all processes of a machine together; None: one for each processor.
    """
    if engine == "ray":
        return _by_ray(job, output, shards, processes)
    count = min(processes or 1, len(shards))
    each = max(1, (threads or os.cpu_count() or 1) // max(count, 1))
    if count <= 1:
        return map(Worker(job, output, each).do, shards)
    return _by_processes(job, output, shards, count, each)


def require_engine(engine: str) -> None:
    """Refuse one that is not there, before anything is written."""
    choose(engine, ENGINES, "engine", "dccm predict --help")
    if engine == "ray":
        import_ray()


def _by_processes(job: Job, output: str, shards: Sequence[Shard], count: int, threads: int) -> Iterator[Done]:
    left = iter(shards)
    with pool_of(count, _MODULES, _begin, (job, output, threads)) as pool:
        waiting: dict[Future[Done], Shard] = {}
        while True:
            # One more for each process than it is at, so that none waits for the next.
            waiting |= {pool.submit(_do, shard): shard for shard in islice(left, 2 * count - len(waiting))}
            if not waiting:
                return
            ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                try:
                    done = future.result()
                except BrokenProcessPool as error:
                    raise _killed([shard.name for shard in waiting.values()], count) from error
                del waiting[future]
                yield done


def _killed(shards: Sequence[str], count: int) -> UserError:
    return UserError(
        f"A process was killed, perhaps because memory was too small, at one of the shards {', '.join(shards)}; "
        f"finished ones are kept. The same command does the others; give fewer than {count} processes if that repeats."
    )


def _begin(job: Job, output: str, threads: int) -> None:
    import torch

    global _worker
    torch.set_num_threads(threads)
    _worker = Worker(job, output, threads)


def _do(shard: Shard) -> Done:
    return _worker.do(shard)


def _by_ray(job: Job, output: str, shards: Sequence[Shard], actors: int | None) -> Iterator[Done]:
    """Actors hold the job; Ray says which is free, and begins those anew that a lost machine took with it."""
    ray = join_cluster()
    from ray.util import ActorPool

    has = ray.cluster_resources()
    gpus = int(has.get("GPU", 0))
    count = actors or gpus or int(has.get("CPU", 1))
    options: dict[str, Any] = {"num_cpus": 1, "num_gpus": min(1, gpus / count) if gpus else 0}
    actor = ray.remote(**options, max_restarts=_RESTARTS, max_task_retries=_RESTARTS)(Worker)
    given = ray.put(job)
    pool = ActorPool([actor.remote(given, output, 1) for _ in range(min(count, len(shards)))])
    try:
        yield from pool.map_unordered(lambda worker, shard: worker.do.remote(shard), shards)
    except ray.exceptions.RayError as error:
        reason = f"{error}".strip().split("\n")[0].rstrip(".")
        raise UserError(
            f"Ray could not go on: {reason}. Finished shards are kept; the same command does the others."
        ) from error
