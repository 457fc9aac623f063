"""What torchrun tells each process that it starts, and how such a process ends; nothing of torch is imported.

`dccm cluster --processes` has torchrun's own launcher start the processes, and leaves a file for their last word in an
environment variable. Then a mistake of the user is no failure of a process, to be tried again, and is told once.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn

from dccm.errors import UserError, visible

LAST_WORD = "DCCM_LAST_WORD"
"""Environment variable with the file in which processes of `--processes` leave what ended them."""


class Launched(NamedTuple):
    """A process that torchrun started."""

    rank: int
    processes: int
    """On all machines."""
    local_rank: int
    """Among those of this machine."""
    machines: int
    job: str
    """The same for all processes of a command, also for those that replace lost ones."""
    restarts: int
    """How often processes were replaced before, as far as this machine knows."""

    @property
    def name(self) -> str:
        """The process as a sentence calls it."""
        return f"process {self.rank} on {socket.gethostname()}"


def launched() -> Launched | None:
    """Who this process is; None: torchrun did not start it."""
    told = os.environ
    if "TORCHELASTIC_RUN_ID" not in told or "RANK" not in told:
        return None
    job = told["TORCHELASTIC_RUN_ID"]
    if job == "none":  # torchrun was given no name; its own process has one as long as it lives.
        job = f"{socket.gethostname()}:{os.getppid()}"
    return Launched(
        int(told["RANK"]),
        int(told["WORLD_SIZE"]),
        int(told["LOCAL_RANK"]),
        int(told.get("GROUP_WORLD_SIZE", 1)),
        job,
        int(told.get("TORCHELASTIC_RESTART_COUNT", 0)),
    )


class JointError(UserError):
    """What one process says for all of them."""


def is_silent() -> bool:
    """Whether another process speaks for this one."""
    told = launched()
    return told is not None and told.rank > 0


def last_word() -> Path | None:
    """Where this process leaves what ended it; None: it says so itself."""
    return Path(os.environ[LAST_WORD]) if launched() and os.environ.get(LAST_WORD) else None


@contextmanager
def ending_at_once() -> Iterator[None]:
    """A process that torchrun started ends without a wait for connections to others, which may hang or be gone."""
    try:
        yield
    except SystemExit as stop:
        if launched() is None:
            raise
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(stop.code if isinstance(stop.code, int) else bool(stop.code))


def refuse(error: UserError) -> NoReturn:
    """End this process with a sentence for the user; of several that come to the same end, one says it."""
    told = launched()
    speaks = told is None or told.local_rank == 0 or isinstance(error, JointError)
    place = last_word()
    if place is None:
        if speaks:
            print(f"dccm: {visible(str(error))}", file=sys.stderr)
        sys.exit(2)
    if speaks:
        place.write_text(str(error), encoding="utf-8")
    leave()


def leave() -> NoReturn:
    """End this process, of which another one says why; that is no failure which calls for new processes."""
    sys.exit(0 if last_word() else 2)
