import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets
from dccm.experiments.engines import Processes, new_engine
from dccm.experiments.grid import run_grid
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need
from dccm.experiments.worker import Work
from dccm.processes import join_cluster
from dccm.training.progress import OnProgress
from tests.experiments.stand_ins import QUICK, make_run, opened

RUNS = [QUICK.spec("kmeans", "digits", seed) for seed in range(4)]


def end_hard(spec: RunSpec, data: DataSets, results: Results, on_progress: OnProgress) -> None:
    """As if the system had taken the memory of the second run."""
    if spec.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    make_run(spec, data, results, on_progress)


def wait_for_ever(spec: RunSpec, data: DataSets, results: Results, on_progress: OnProgress) -> None:
    results.run(spec).path.mkdir(parents=True)
    while True:
        time.sleep(0.05)


def test_a_process_that_is_killed_takes_no_other_with_it(tmp_path: Path) -> None:
    results = opened(tmp_path / "results")
    engine = Processes(Work(results, DataSets(), end_hard, threads=1), jobs=2)
    run_grid([Need(run) for run in RUNS], results, engine)
    assert [results.is_finished(run) for run in RUNS] == [True, False, True, True]
    reason = results.failure(RUNS[1])
    assert reason == "The process was killed by signal 9; it may have needed more memory than there is."


def test_whoever_ends_the_grid_ends_its_processes(tmp_path: Path) -> None:
    results = opened(tmp_path / "results")
    engine = Processes(Work(results, DataSets(), wait_for_ever), jobs=1)
    engine.start(Need(RUNS[0]))
    while not results.run(RUNS[0]).path.exists():
        engine.messages()
    engine.stop()
    assert results.failure(RUNS[0]) is None  # It goes on another time.


class Task:
    """What Ray gives for a call: it can be a key, and be asked for its result."""

    def __init__(self, function: Callable[..., Any], *words: Any) -> None:
        self.function, self.words = function, words


class OtherRay:
    """What the package uses of Ray, in this process."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.cancelled: list[Any] = []

    def is_initialized(self) -> bool:
        return bool(self.asked)

    def init(self, **arguments: Any) -> None:
        self.asked |= arguments

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        assert options == {"max_calls": 1}
        return lambda function: SimpleNamespace(remote=partial(Task, function))

    def wait(self, tasks: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return tasks[:1], tasks[1:]

    def get(self, task: Any) -> Any:
        if task.words[1].spec.seed == 2:
            raise RuntimeError("the machine is gone")
        return task.function(*task.words)

    def cancel(self, task: Any) -> None:
        self.cancelled.append(task)


def test_ray_spreads_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", OtherRay())
    results = opened(tmp_path / "results")
    engine = new_engine("ray", Work(results, DataSets(), make_run), jobs=1)
    assert engine.at_once == 3
    run_grid([Need(run) for run in RUNS], results, engine)
    assert [results.is_finished(run) for run in RUNS] == [True, True, False, True]
    assert results.failure(RUNS[2]) == "Ray could not make it: the machine is gone"


def test_ray_is_asked_for_when_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    work = Work(opened(tmp_path / "results"), DataSets(), make_run)
    with pytest.raises(UserError, match=r"engine 'ray' needs Ray. Get it with: pip install 'dccm\[ray\]'"):
        new_engine("ray", work, jobs=1)
    with pytest.raises(UserError, match="No engine 'rai'. Did you mean 'ray'?"):
        new_engine("rai", work, jobs=1)


@pytest.mark.parametrize(("address", "tries"), [(None, 2), ("ray://machine:10001", 1)])
def test_a_ray_that_does_not_start_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str | None, tries: int
) -> None:
    begun: list[dict[str, Any]] = []

    class Down(OtherRay):
        def init(self, **arguments: Any) -> None:
            begun.append(arguments)
            raise RuntimeError("The node timed out.\nMore of it.")

    monkeypatch.setitem(sys.modules, "ray", Down())
    monkeypatch.setattr(os, "environ", dict(os.environ))
    if address:
        os.environ["RAY_ADDRESS"] = address
    with pytest.raises(UserError, match=r"could not join or start a cluster: The node timed out\. Set RAY_ADDRESS"):
        new_engine("ray", Work(opened(tmp_path / "results"), DataSets(), make_run), jobs=1)
    assert len(begun) == tries


def test_a_ray_that_is_up_the_second_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(OtherRay):
        def init(self, **arguments: Any) -> None:
            if not self.cancelled:
                self.cancelled.append(arguments)
                raise RuntimeError("The node timed out.")
            super().init(**arguments)

    monkeypatch.setattr(os, "environ", dict(os.environ) | {"RAY_DASHBOARD_STARTUP_TIMEOUT_S": "7"})
    os.environ.pop("RAY_ADDRESS", None)
    monkeypatch.setitem(sys.modules, "ray", Slow())
    assert join_cluster().asked == {"log_to_driver": False, "include_dashboard": False}
    assert os.environ["RAY_DASHBOARD_STARTUP_TIMEOUT_S"] == "7"  # Who set it knows why.


@pytest.mark.slow
def test_a_real_ray_makes_real_runs(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray comes with dccm[ray]")
    from dccm.commands.reproduce import reproduce

    made = reproduce(
        ["table2"], output=tmp_path, engine="ray", datasets=["digits"], limit_images=64, methods=["kmeans", "nmf"]
    )
    assert made.missing == {}
    assert "K-means" in made.shown["table2"].text()
