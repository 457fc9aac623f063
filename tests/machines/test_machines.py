"""A run on two machines that loses one, gets it back, loses the link, and has a process that hangs."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.machines.namespaces import Machine, two_machines, why_not

pytestmark = [pytest.mark.machines, pytest.mark.skipif(bool(why_not()), reason=why_not() or "they can be made")]
MINUTES = os.environ.get("MACHINES_MINUTES", "5")
"""Of training: longer than all turns take."""
PATIENCE = 60 * float(MINUTES) + float(os.environ.get("MACHINES_PATIENCE", "180"))
"""Seconds in which each turn of the tale has to come, the end of training among them; a busy computer needs more."""


class Tale:
    """What the first machine has said, turn by turn."""

    def __init__(self, machines: tuple[Machine, Machine]) -> None:
        self.machines = machines
        self.known = 0

    def wait(self, what: str) -> float:
        """Until one of the machines says something new; the seconds that took."""
        return self.until(lambda: "".join(machine.text() for machine in self.machines).count(what) > self.known, what)

    def until(self, holds: Callable[[], bool], what: str) -> float:
        started = time.monotonic()
        while not holds():
            assert time.monotonic() - started < PATIENCE, f"{what!r} never came:\n" + self.machines[0].text()[-3000:]
            time.sleep(0.2)
        return time.monotonic() - started

    def trains(self, run: Path) -> None:
        """Until there is a checkpoint that was not there: before that processes wait for each other patiently."""
        known = checkpoints(run)
        self.until(lambda: not checkpoints(run) <= known, "a checkpoint")

    def turn(self, what: str) -> None:
        """What is said from here on is new."""
        self.known = "".join(machine.text() for machine in self.machines).count(what)


def checkpoints(run: Path) -> set[str]:
    """Names of all that are there."""
    return {path.name for path in (run / "checkpoints").glob("*.safetensors")}


def test_a_run_outlives_a_lost_machine_a_cut_link_and_a_process_that_hangs(tmp_path: Path) -> None:
    images, run = tmp_path / "images.npy", tmp_path / "run"
    np.save(images, np.random.default_rng(0).integers(0, 256, (200, 12, 12, 1), dtype=np.uint8))
    words = ["cluster", str(images), "-k", "3", "--preset", "paper", "--budget", f"minutes:{MINUTES}"]
    for setting in ("width=0.05", "batch_size=100", "mini_batch=50", "critic_positions=1", "checkpoint_minutes=0.02"):
        words += ["--set", setting]
    words += ["-o", str(run)]
    both, alone = "2 processes on 2 machines", "1 process on 1 machine"
    with two_machines(tmp_path) as (first, second):
        tale = Tale((first, second))
        first.begin(words)
        second.begin(words)
        tale.wait(both)
        tale.trains(run)
        tale.turn(alone)
        second.lose_power()
        print(f"alone after {tale.wait(alone):.0f} s without the other machine")

        tale.turn(both)
        second.begin(words)
        print(f"both after {tale.wait(both):.0f} s with the other machine")

        tale.trains(run)
        tale.turn(alone)
        second.cut()
        print(f"alone after {tale.wait(alone):.0f} s without a link")
        second.lose_power()
        second.cut(mended=True)
        tale.turn(both)
        second.begin(words)
        print(f"both after {tale.wait(both):.0f} s with the link")

        tale.trains(run)
        time.sleep(20)  # torchrun may begin all more than once when a machine joins.
        before = first.workers()
        for pid in second.workers():
            os.kill(pid, signal.SIGSTOP)
        noticed = tale.until(lambda: first.workers() != before, "another process")
        print(f"a process that hangs was noticed after {noticed:.0f} s")
        assert noticed < 60
        assert first.torchrun is not None
        tale.until(lambda: first.torchrun is not None and first.torchrun.poll() is not None, "the end")
        assert first.torchrun.returncode == 0, first.text()[-3000:]
        history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
        assert [record["epoch"] for record in history] == list(range(1, len(history) + 1))
        assert (run / "assignments.csv").is_file()
