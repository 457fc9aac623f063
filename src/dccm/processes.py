"""Work beside each other in processes, which end with the one that began them, or in a Ray cluster."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from dccm.errors import UserError

_PATIENCE = {
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_worker_register_timeout_seconds": "300",
}
"""For the processes of Ray: on a busy machine it gives them up that are up within a minute."""
_TRIES = 2
"""To begin a cluster: some of Ray's own waits cannot be set, and the second time all its files are in memory."""
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


@contextmanager
def pool_of(
    count: int,
    modules: Sequence[str] = (),
    begin: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (),
) -> Iterator[ProcessPoolExecutor]:
    """So many processes; what is wrong, and Ctrl-C, ends them at once: what they were at is done anew.

    Args:
        count: Processes.
        modules: What each of them will import, done once for all where the system can do that.
        begin: Called in each of them before anything else, with what is given.
        given: For `begin`.
    """
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, context(modules), _begin, (dict(os.environ), begin, given))
    try:
        yield pool
    except BaseException as error:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                f"One of {count} processes was killed, perhaps because memory was too small; what is done so far is "
                "kept. Begin again, with fewer processes if it happens again."
            ) from error
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def mapped(
    pool: Executor, function: Callable[[_Given], _Made], things: Iterable[_Given], ahead: int
) -> Iterator[_Made]:
    """`map` by a pool, no more than so many things ahead of whoever takes the results, in their order."""
    waiting: deque[Future[_Made]] = deque()
    try:
        for thing in things:
            waiting.append(pool.submit(function, thing))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def context(modules: Sequence[str] = ()) -> BaseContext:
    """Processes that have modules from the start where the system can do that; torch takes seconds to import."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(list(modules))
    return made


def end_with_parent() -> None:
    """What began this process may be killed; it leaves nothing behind that goes on."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _begin(environment: dict[str, str], begin: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    os.environ.update(environment)  # As it is now: what processes are born of may be of an earlier time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; who began this process decides what it means.
    end_with_parent()
    if begin is not None:
        begin(*given)


def import_ray() -> Any:
    """Ray, or where to get it."""
    try:
        import ray
    except ImportError as error:
        raise UserError("engine 'ray' needs Ray. Get it with: pip install 'dccm[ray]'; or leave it out.") from error
    return ray


def join_cluster(**options: Any) -> Any:
    """Ray, in the cluster that RAY_ADDRESS names, or in one that begins on this machine.

    Args:
        **options: Of `ray.init`, for one that begins.
    """
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)  # Read when Ray is imported, and by what it begins.
    ray = import_ray()
    tries = 1 if "RAY_ADDRESS" in os.environ else _TRIES
    while not ray.is_initialized():
        tries -= 1
        try:
            ray.init(log_to_driver=False, include_dashboard=False, **options)
        except Exception as error:  # Ray says what it is in words alone.
            if tries:
                continue
            reason = f"{error}".strip().split("\n")[0].rstrip(".")
            way = "Set RAY_ADDRESS to a cluster that is up, or leave out engine"
            raise UserError(f"engine 'ray' could not join or start a cluster: {reason}. {way}.") from error
    return ray
