"""All runs of a grid, made beside each other until nothing is left to do."""

import time
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from dccm.errors import UserError
from dccm.experiments.engines import Engine, Message
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need
from dccm.experiments.worker import Outcome

_SECONDS_TO_LOOK_AGAIN = 1.0
"""At a run that another process is making."""


class Observer(Protocol):
    """Is told how a grid gets on; the command line shows it."""

    def planned(self, needs: list[Need], seconds: dict[str, float]) -> None:
        """What is to be done, and the seconds that each run will take, by key, as far as they are known."""

    def began(self, need: Need) -> None:
        """A run was begun, or gone on with."""

    def progressed(self, message: Message) -> None:
        """A run got on."""

    def ended(self, need: Need, outcome: Outcome) -> None:
        """A run has ended, in this process or in another one."""


class Unseen:
    """Tells nobody."""

    def planned(self, needs: list[Need], seconds: dict[str, float]) -> None:
        """Nothing."""

    def began(self, need: Need) -> None:
        """Nothing."""

    def progressed(self, message: Message) -> None:
        """Nothing."""

    def ended(self, need: Need, outcome: Outcome) -> None:
        """Nothing."""


UNSEEN = Unseen()


class Waiting(NamedTuple):
    """A run that is to be made, and when to look at it again."""

    need: Need
    not_before: float = 0.0


def merged(needs: Iterable[Need]) -> list[Need]:
    """Each run once, with the measures of all who need it; what a run needs itself comes before it."""
    found: dict[str, Need] = {}

    def add(need: Need) -> None:
        for _, other in need.spec.after:
            add(Need(other))
        before = found.get(need.spec.key, Need(need.spec))
        found[need.spec.key] = Need(need.spec, tuple(dict.fromkeys((*before.measures, *need.measures))))

    for need in needs:
        add(need)
    return list(found.values())


def unfinished(needs: Iterable[Need], results: Results) -> list[Need]:
    """The runs of which something is left to do, and that have not failed."""

    def is_left(need: Need) -> bool:
        if not results.is_finished(need.spec):
            return results.failure(need.spec) is None
        return any(results.measured(need.spec, measure) is None for measure in need.measures)

    return [need for need in needs if is_left(need)]


def run_grid(needs: list[Need], results: Results, engine: Engine, observer: Observer = UNSEEN) -> None:
    """Make all runs that are not finished; what fails is noted, and the rest goes on.

    Args:
        needs: The runs, as `merged` gives them.
        results: Where they are.
        engine: Who makes them.
        observer: Is told how it gets on.
    """
    grid = _Grid(needs, results, engine, observer)
    try:
        grid.work()
    except BaseException:
        engine.stop()
        raise


class _Grid:
    """The state of one call of `run_grid`."""

    def __init__(self, needs: list[Need], results: Results, engine: Engine, observer: Observer) -> None:
        self.results, self.engine, self.observer = results, engine, observer
        self.left = [Waiting(need) for need in unfinished(needs, results)]
        self.running: dict[str, Need] = {}

    def work(self) -> None:
        while self.left or self.running:
            self.start_what_can()
            if not self.running:
                time.sleep(_SECONDS_TO_LOOK_AGAIN / 10)  # Others are at all that is left.
                continue
            for message in self.engine.messages():
                self.take(message)

    def start_what_can(self) -> None:
        for waiting in list(self.left):
            if len(self.running) >= self.engine.at_once:
                return
            if waiting.not_before <= time.monotonic() and self.may_start(waiting):
                self.left.remove(waiting)
                if not unfinished([waiting.need], self.results):  # Another process has made it meanwhile.
                    self.observer.ended(waiting.need, Outcome("finished"))
                    continue
                self.running[waiting.need.spec.key] = waiting.need
                self.observer.began(waiting.need)
                self.engine.start(waiting.need)

    def may_start(self, waiting: Waiting) -> bool:
        """Whether all that a run needs is there; if that failed, it fails too."""
        for _, other in waiting.need.spec.after:
            reason = self.results.failure(other)
            if reason is not None:
                self.left.remove(waiting)
                self.fail(waiting.need, f"It needs the run {other.key}, which failed: {reason}")
                return False
        return all(self.results.is_finished(other) for _, other in waiting.need.spec.after)

    def take(self, message: Message) -> None:
        if message.outcome is None:
            self.observer.progressed(message)
            return
        need, outcome = self.running.pop(message.key), message.outcome
        if outcome.state == "busy":
            self.left.append(Waiting(need, time.monotonic() + _SECONDS_TO_LOOK_AGAIN))
        elif outcome.state == "stopped":
            raise UserError(outcome.reason)
        elif outcome.state == "failed":
            self.fail(need, outcome.reason)
            return
        self.observer.ended(need, outcome)

    def fail(self, need: Need, reason: str) -> None:
        """Note a failure, unless the process that made the run could do that itself."""
        if self.results.failure(need.spec) is None:
            self.results.note_failure(need.spec, reason)
        self.observer.ended(need, Outcome("failed", reason))


def failed(needs: Iterable[Need], results: Results) -> dict[RunSpec, str]:
    """The runs that could not be made, with the reason."""
    reasons = {need.spec: results.failure(need.spec) for need in needs}
    return {spec: reason for spec, reason in reasons.items() if reason is not None}
