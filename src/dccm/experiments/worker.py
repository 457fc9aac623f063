"""One run of a grid, from wherever it stands to finished, whatever happens on the way."""

import errno
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dccm.data.images import ImageSet
from dccm.data.read import read_images
from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets
from dccm.experiments.results import Results
from dccm.experiments.revision import revision
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need
from dccm.locks import locked_file
from dccm.runs.directory import RunDirectory
from dccm.training.progress import OnProgress, Progress, Stage

_FULL = "No room on disk to write into {}; finished runs are kept. Free some space, then run the same command again."
State = Literal["finished", "failed", "busy", "stopped"]
"""How it ended: as it should; it cannot be made; another process is making it; nothing can be made any more."""


class Outcome(NamedTuple):
    """What became of a run."""

    state: State
    reason: str = ""


MakeRun = Callable[[RunSpec, DataSets, Results, OnProgress], None]
"""Makes an ordinary run directory, or goes on with it; a function of a module, as other processes call it."""
Tell = Callable[[float, float | None], None]
"""Called with the share of a run that is done, and the seconds left, if that can be said."""


@dataclass(frozen=True)
class Work:
    """What all runs of a grid have in common."""

    results: Results
    data: DataSets
    make_run: MakeRun
    threads: int | None = None
    """With which a process computes; None: as torch chooses."""


def do(work: Work, need: Need, tell: Tell) -> Outcome:
    """Make a run and take its measures, unless that is done already, or another process is at it."""
    results, spec = work.results, need.spec
    try:
        with locked_file(results.locks / spec.key, lambda: False) as ours:
            if not ours:
                return Outcome("busy")
            reason = results.failure(spec)
            return Outcome("failed", reason) if reason else _done(work, need, tell)
    except UserError as error:  # Why it failed before cannot be read.
        return Outcome("stopped", str(error))
    except OSError as error:
        way = "Free some space, or change its permissions"
        return Outcome("stopped", f"Cannot write into {results.path}: {error.strerror}. {way}.")


def _done(work: Work, need: Need, tell: Tell) -> Outcome:
    try:
        _finish(work, need, tell)
    except KeyboardInterrupt:
        return Outcome("stopped", "A run was interrupted; the same command goes on from there.")
    except Exception as error:
        if is_full_disk(error):
            said = str(error) if isinstance(error, UserError) else _FULL.format(work.results.path)
            return Outcome("stopped", said)
        reason = str(error) if isinstance(error, UserError) else str(UserError(f"{type(error).__name__}: {error}"))
        work.results.note_failure(need.spec, reason, "" if isinstance(error, UserError) else traceback.format_exc())
        return Outcome("failed", reason)
    return Outcome("finished")


def is_full_disk(error: BaseException | None) -> bool:
    """Whether there is no room on disk: no fault of the run, and all others would fail too."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


def _finish(work: Work, need: Need, tell: Tell) -> None:
    """What is left to do of a run."""
    results, spec = work.results, need.spec
    if not results.is_finished(spec):
        started, busy = time.monotonic(), time.process_time()
        work.make_run(spec, work.data, results, _telling(tell))
        # Of this process: what was spent before an interruption is not known any more.
        spent = {"wall_seconds": time.monotonic() - started, "cpu_seconds": time.process_time() - busy}
        rounded = {name: round(seconds, 3) for name, seconds in spent.items()}
        results.note_finished(spec, {"revision": revision()} | rounded)
    left = [measure for measure in need.measures if results.measured(spec, measure) is None]
    if left:
        images = images_of(spec, work.data, results.run(spec))
        for measure in left:
            results.note_measure(spec, measure.name, measure.take(results.run(spec), images))


def _telling(tell: Tell) -> OnProgress:
    def on_progress(progress: Progress | Stage) -> None:
        if isinstance(progress, Progress):
            tell(progress.done, progress.seconds_left)

    return on_progress


def images_of(spec: RunSpec, data: DataSets, directory: RunDirectory) -> ImageSet:
    """All images of a run's data set, both splits, as the run saw those that it saw."""
    height, width, channels = directory.read_source().shape
    source = data.images(spec.dataset, limit=spec.limit, variant=spec.variant)
    fit: Any = directory.read_config().settings["fit"]
    return read_images(source, image_size=(height, width), fit=fit, channels=channels)
