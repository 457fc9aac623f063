"""Progress of a command: told to nobody, as a bar on a terminal, or as plain lines in a log file."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from dccm.training.progress import Progress, Stage

_SECONDS_BETWEEN_LINES = 10.0
_LONG = 3600.0
"""Seconds left from which on a run is worth a word about budgets."""
_SURE = 0.01
"""Share of a run after which its rate is trusted."""


class Watcher(Protocol):
    """Is told how a command gets on; `Display` shows it."""

    def say(self, text: str) -> None:
        """A sentence that the user should read."""

    def reading(self, done: int, total: int) -> None:
        """Images read so far, and in all."""

    def downloading(self, done: int, total: int) -> None:
        """Bytes fetched so far, and in all."""

    def training(self, progress: Progress | Stage) -> None:
        """A large batch is done, or work without epochs got on."""


class Silent:
    """Tells nobody."""

    def say(self, text: str) -> None:
        """Nothing."""

    def reading(self, done: int, total: int) -> None:
        """Nothing."""

    downloading = reading

    def training(self, progress: Progress | Stage) -> None:
        """Nothing."""


SILENT = Silent()


class Display:
    """Shows the progress of training on standard error; as a context manager it leaves the terminal tidy.

    Args:
        quiet: Show nothing but warnings of a collapse.
        stream: Where to show it.
    """

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.warned: set[str] = set()
        self.told_of_budgets = False
        self.last_line = float("-inf")
        self.bar: Bar | None = None
        if self.stream.isatty() and not quiet:
            # The state gives way on a narrow terminal, not the title or the bar.
            state = TextColumn("{task.fields[state]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
            title = TextColumn("{task.description}", table_column=Column(no_wrap=True))
            columns = (title, BarColumn(bar_width=16), TaskProgressColumn(), state)
            self.bar = Bar(*columns, console=Console(file=self.stream), expand=True)
            self.task = self.bar.add_task("starting", total=1.0, state="")

    def __enter__(self) -> "Display":
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def reading(self, done: int, total: int) -> None:
        """Files read so far."""
        if self.bar is not None:
            self.bar.update(self.task, description="reading images", completed=done / total, state=f"{done}/{total}")
        elif done == total or self._time_for_a_line():
            self.say(f"reading images {done}/{total}")

    def downloading(self, done: int, total: int) -> None:
        """Bytes fetched so far."""
        state = f"{done / 1e6:.1f}/{total / 1e6:.1f} MB"
        if self.bar is not None:
            self.bar.update(self.task, description="downloading", completed=done / max(total, 1), state=state)
        elif done == total or self._time_for_a_line():
            self.say(f"downloading {state}")

    def _working(self, stage: Stage) -> None:
        if self.bar is not None:
            self.bar.update(self.task, description=stage.what, completed=stage.done, state="")
        elif stage.done >= 1 or self._time_for_a_line():
            self.say(f"{stage.what}  {stage.done:4.0%}")

    def training(self, progress: Progress | Stage) -> None:
        """A large batch is done, or a stage of a method without epochs."""
        if isinstance(progress, Stage):
            self._working(progress)
            return
        title = f"epoch {progress.epoch}" + (f"/{progress.epochs}" if progress.epochs else "")
        if self.bar is not None:
            self.bar.update(self.task, description=title, completed=progress.done, state=describe(progress))
        elif self._time_for_a_line() or progress.done >= 1:
            self.say(f"{title}  {progress.done:4.0%}  {describe(progress)}")
        if progress.epochs and progress.done > _SURE and progress.seconds_left > _LONG and not self.told_of_budgets:
            self.told_of_budgets = True
            self.say(
                f"This takes {clock(progress.seconds_left)} hours more. A run with a budget (minutes:60, for example) "
                "fits its steps and stages to the time it has."
            )
        if progress.record is not None:
            for warning in progress.record.get("warnings", []):
                self.warn(warning, progress.epoch)

    def warn(self, warning: str, epoch: int) -> None:
        """Say what looks wrong, once for each kind of trouble."""
        kind = "".join(letter for letter in warning if not letter.isdigit())
        if kind not in self.warned:
            self.warned.add(kind)
            self._print(f"Warning (epoch {epoch}): {warning}")

    def say(self, text: str) -> None:
        """A line above the bar, or in the log."""
        if not self.quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        if self.bar is not None:
            self.bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self.stream, flush=True)

    def _time_for_a_line(self) -> bool:
        now = time.monotonic()
        if now - self.last_line < _SECONDS_BETWEEN_LINES:
            return False
        self.last_line = now
        return True


def describe(progress: Progress) -> str:
    """Rate, time left, losses and the state of the clusters, in one line."""
    means = progress.means
    parts = [f"{progress.images_per_second:.0f} images/s", f"{clock(progress.seconds_left)} left"]
    parts += [f"{name} {means[name]:.3f}" for name in ("loss", "graph", "label", "information") if name in means]
    if "confident_share" in means:
        parts += [f"confident {means['confident_share']:.0%}", f"linked {means['linked_share']:.0%}"]
    if progress.record and "cluster_sizes" in progress.record:
        sizes = progress.record["cluster_sizes"]
        parts.append(f"clusters used {len(sizes) - progress.record['dead_clusters']}/{len(sizes)}")
        parts.append(f"balance {progress.record['entropy']:.2f}")
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """Minutes and seconds, and hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, of_hour = divmod(minutes, 60)
    return f"{hours}:{of_hour:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


READING = {"on_progress": "reading", "on_download": "downloading", "say": "say"}
"""Callbacks of `read_images`, and what shows them."""


@contextmanager
def shown(verbose: bool) -> Iterator[dict[str, Any]]:
    """What shows progress, by name; nothing unless it is wanted."""
    if not verbose:
        yield {}
        return
    with Display() as display:
        yield {name: getattr(display, name) for name in ("training", *READING.values())}
