import io

import pytest
from rich.console import Console

from dccm.cli.live import GridView
from dccm.experiments.engines import Message
from dccm.experiments.request import Request
from dccm.experiments.targets import Need
from dccm.experiments.worker import Outcome

NEEDS = [Need(spec) for spec in Request(seeds=(0, 1, 2)).over_seeds("kmeans", "digits")]
KEYS = [need.spec.key for need in NEEDS]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_has_a_line_for_each_run_that_ended() -> None:
    stream = io.StringIO()
    with GridView(stream=stream) as view:
        view.planned(NEEDS, dict.fromkeys(KEYS, 10.0))
        view.began(NEEDS[0])
        view.ended(NEEDS[0], Outcome("finished"))
        view.ended(NEEDS[1], Outcome("busy"))
        view.ended(NEEDS[2], Outcome("failed", "It was too much."))
    first, second = stream.getvalue().splitlines()
    assert first.startswith("1/3 runs, ")
    assert first.endswith("left  kmeans on digits seed 0")
    assert second == "kmeans on digits seed 2 failed: It was too much."


def test_quiet_tells_of_failures_only() -> None:
    stream = io.StringIO()
    with GridView(quiet=True, stream=stream) as view:
        view.planned(NEEDS, {})
        view.say("1 run")
        view.ended(NEEDS[0], Outcome("finished"))
        view.ended(NEEDS[1], Outcome("failed", "Why not."))
    assert stream.getvalue() == "kmeans on digits seed 1 failed: Why not.\n"


def test_a_terminal_sees_what_runs_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with GridView(stream=Terminal()) as view:
        view.planned(NEEDS, {KEYS[0]: 30.0, KEYS[1]: 10.0})  # The third is taken to be like the others.
        view.started -= 25.0
        view.began(NEEDS[1])
        view.progressed(Message(KEYS[1], 0.5))
        view.ended(NEEDS[2], Outcome("finished"))
        shown = io.StringIO()
        Console(file=shown, width=100).print(view.shown())
    assert "1/3 runs, 0:35 left" in shown.getvalue()  # 25 of 60 seconds are done.
    assert "kmeans on digits seed 1" in shown.getvalue()
    assert " 50%" in shown.getvalue()
