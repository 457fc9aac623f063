"""A command done by several processes of this machine: torchrun's own launcher starts it again, so many times."""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from dccm.errors import UserError, counted, require
from dccm.launched import LAST_WORD

_RESTARTS = 10
"""How often all processes are replaced because one was lost."""
_SECONDS_TO_END = 10
"""How long a process that should end has for its checkpoint; one that hangs has nothing to say."""


def do_together(processes: int, words: Sequence[str]) -> None:
    """Let so many processes do a command; if one is lost, all go on from the last checkpoint.

    Args:
        processes: How many.
        words: Of the command line, behind `dccm`.
    """
    _require_room(processes)
    with TemporaryDirectory(prefix="dccm-") as folder:
        word = Path(folder) / "word"
        with _environment(_told_to_processes(processes, word)):
            _launch(processes, words, folder)
        if word.exists():
            raise UserError(word.read_text(encoding="utf-8"))


def _require_room(processes: int) -> None:
    """Refuse more processes than can work at a time; two show on any machine what several do."""
    cores = _cores()
    if processes <= max(2, cores):
        return
    from torch.cuda import device_count

    gpus = device_count()
    require(
        processes <= gpus,
        f"processes must be {max(2, cores, gpus)} at most, as this machine has {counted(cores, 'core')} and "
        f"{counted(gpus, 'GPU')}, got {processes}. More machines begin with torchrun: docs/many_machines.md.",
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _told_to_processes(processes: int, word: Path) -> dict[str, str]:
    told = {
        LAST_WORD: str(word),
        # With a common store, processes would find the addresses of those that they replace.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    wished = {
        "OMP_NUM_THREADS": str(max(1, _cores() // processes)),
        "TORCH_CPP_LOG_LEVEL": "FATAL",
    }
    return told | {name: value for name, value in wished.items() if name not in os.environ}


def _launch(processes: int, words: Sequence[str], folder: str) -> None:
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=_RESTARTS,
        shutdown_timeout=_SECONDS_TO_END,
        logs_specs=DefaultLogsSpecs(log_dir=folder),
    )
    logging.disable(logging.CRITICAL)  # What torch says of a lost process is said in a sentence.
    try:
        elastic_launch(config, sys.executable)("-m", "dccm", *words)
    except SignalException as stop:
        raise KeyboardInterrupt from stop
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise UserError(
            f"Process {rank} of {processes} ended with exit code {failure.exitcode}, also when all were begun anew "
            f"{_RESTARTS} times. If memory was too small, take fewer processes or smaller batches, and add --resume."
        ) from error
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def _environment(told: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
