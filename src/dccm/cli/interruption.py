"""What Ctrl-C does to a command: the progress leaves a tidy terminal, and a word says how to go on."""

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dccm.errors import require, visible
from dccm.launched import is_silent, launched

if TYPE_CHECKING:
    from dccm.progress import Display


_AGAIN = "Nothing that was there is harmed; give the same command again."
_GOES_ON = "What is done so far is kept: the same command goes on from there."


@contextmanager
def watched(quiet: bool, advice: str = _GOES_ON) -> Iterator["Display"]:
    """Show progress; Ctrl-C, and other requests to end, stop with a word on how to go on."""
    with goes_on_by_itself(advice), _shown(quiet) as display:
        yield display


def _shown(quiet: bool) -> "Display":
    from dccm.progress import Display

    return Display(quiet, StringIO() if is_silent() else None)


@contextmanager
def goes_on_by_itself(advice: str = _GOES_ON) -> Iterator[None]:
    """Ctrl-C, and other requests to end, stop with a word on what the same command will do."""
    try:
        with _requests_to_end():
            yield
    except KeyboardInterrupt:
        stop_with(advice)


@contextmanager
def _requests_to_end() -> Iterator[None]:
    """A polite request, and a terminal that is closed, do what Ctrl-C does; `nohup` has the last word."""
    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in wanted}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])


@contextmanager
def resumable(output: Path, quiet: bool) -> Iterator["Display"]:
    """The same for a run, which can be resumed once it has begun."""
    from dccm.runs.directory import RunDirectory

    try:
        with _requests_to_end(), _shown(quiet) as display:
            yield display
    except KeyboardInterrupt as stop:
        checkpoint = getattr(stop, "checkpoint", None)  # Of `InterruptedRunError`, which only a run raises.
        if checkpoint is None and not RunDirectory(output).holds_run:
            stop_with(_GOES_ON)
        where = f"The checkpoint is {checkpoint}; go on" if checkpoint else "Go on"
        stop_with(f"{where} with: {_resume_command()}")


def begun_together(processes: int | None, images: Sequence[str]) -> bool:
    """Whether several processes have done the command that the user typed; torchrun's own launcher starts them."""
    if processes in (None, 1) or launched() is not None:
        return False
    require("-" not in images, "images must not be - with processes, as only one can read it. Name a list in a file.")
    from dccm.commands.processes import do_together

    assert processes is not None
    with goes_on_by_itself(f"Go on with: {_resume_command()}"):
        do_together(processes, sys.argv[1:])
    return True


def stop_with(advice: str = _AGAIN) -> NoReturn:
    """End with a word on what to do."""
    if launched() is not None:  # torchrun wants all processes to end, perhaps for others to go on.
        sys.exit(130)
    with suppress(OSError):  # The terminal may be gone.
        print(f"\nInterrupted. {visible(advice)}", file=sys.stderr)
    sys.exit(130)


def _resume_command() -> str:
    words = ["dccm", *sys.argv[1:]]
    return shlex.join(words if "--resume" in words else [*words, "--resume"])
