"""A grid while it is worked on: what runs, what is left, how long; as a live table, or as lines in a log file."""

import sys
import time
from statistics import fmean
from types import TracebackType
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dccm.errors import visible
from dccm.experiments.engines import Message
from dccm.experiments.targets import Need
from dccm.experiments.worker import Outcome
from dccm.progress import Silent, clock


class GridView(Silent):
    """Shows how a grid gets on, on standard error; as a context manager it leaves the terminal tidy.

    Args:
        quiet: Show nothing but failures.
        jobs: Runs at a time.
        stream: Where to show it.
    """

    def __init__(self, quiet: bool = False, jobs: int = 1, stream: TextIO | None = None) -> None:
        self.quiet, self.jobs, self.stream = quiet, jobs, stream or sys.stderr
        self.running: dict[str, Need] = {}
        self.shares: dict[str, float] = {}
        self.weights: dict[str, float] = {}
        """Seconds that each run that was left at the start is expected to take."""
        self.ended_keys: set[str] = set()
        self.failed = 0
        self.started = time.monotonic()
        live = self.stream.isatty() and not quiet
        self.live = Live(console=Console(file=self.stream), get_renderable=self.shown, transient=True) if live else None

    def __enter__(self) -> "GridView":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def planned(self, needs: list[Need], seconds: dict[str, float]) -> None:
        """The clock begins here: what came before was a measurement."""
        usual = fmean(seconds.values()) if seconds else 1.0
        self.weights = {need.spec.key: max(1e-3, seconds.get(need.spec.key, usual)) for need in needs}
        self.started = time.monotonic()

    def began(self, need: Need) -> None:
        """A run joins those that are shown."""
        self.running[need.spec.key] = need

    def progressed(self, message: Message) -> None:
        """Its bar grows."""
        self.shares[message.key] = message.done

    def ended(self, need: Need, outcome: Outcome) -> None:
        """One less is left."""
        self.running.pop(need.spec.key, None)
        self.shares.pop(need.spec.key, None)
        if outcome.state == "busy":
            return
        self.ended_keys.add(need.spec.key)
        self.failed += outcome.state == "failed"
        if outcome.state == "failed":
            self._print(f"{need.spec.label()} failed: {outcome.reason}")
        elif self.live is None:
            self.say(f"{self.state()}  {need.spec.label()}")

    def say(self, text: str) -> None:
        """A line above the table, or in the log."""
        if not self.quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        text = visible(text, keep="\n")
        if self.live is not None:
            self.live.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self.stream, flush=True)

    def state(self) -> str:
        """What is done, and how long the rest takes."""
        failed = f", {self.failed} failed" if self.failed else ""
        left = self.seconds_left()
        time_left = "" if left is None else f", {clock(left)} left"
        return f"{len(self.ended_keys)}/{len(self.weights)} runs{failed}{time_left}"

    def seconds_left(self) -> float | None:
        """By the time that the part took that is done; None: nothing is."""
        done = sum(self.weights.get(key, 0.0) for key in self.ended_keys)
        done += sum(self.weights.get(key, 0.0) * share for key, share in self.shares.items())
        total = sum(self.weights.values())
        return (time.monotonic() - self.started) * max(0.0, total - done) / done if done else None

    def shown(self) -> Group:
        """The state, and a line for each run that is being made."""
        table = Table(box=None, pad_edge=False, show_header=False)
        for key, need in self.running.items():
            share = self.shares.get(key, 0.0)
            table.add_row(Text(need.spec.label()), ProgressBar(completed=100 * share, width=24), f"{share:4.0%}")
        return Group(Text(self.state()), table)
