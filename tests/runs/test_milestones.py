import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.commands.cluster import cluster
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.estimators import DCCM
from dccm.methods import METHODS
from dccm.methods.base import GradientMethod
from dccm.progress import Silent, Watcher
from dccm.runs.fitting import fit
from dccm.runs.milestones import Milestone, read_milestones, write_milestone
from dccm.runs.model import Model
from dccm.training.loop import InterruptedRunError
from dccm.training.progress import Progress, Stage
from tests.methods.test_contract import config_of, small

FOUND = bars(48, side=8, classes=3)
"""Two large batches an epoch."""
ON_PICTURES = [name for name, kind in METHODS.items() if issubclass(kind, GradientMethod) and not kind.needs_vectors]


class StopAfter(Silent):
    """Ends a run, as Ctrl-C would, after so many large batches."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def training(self, progress: Progress | Stage) -> None:
        self.left -= isinstance(progress, Progress)
        if self.left == 0:
            raise KeyboardInterrupt


def run(output: Path, method: str = "dccm", watcher: Watcher | None = None, **more: Any) -> Path:
    arguments: dict[str, Any] = {"watcher": watcher} if watcher else {}
    resume = more.pop("resume", False)
    settings = {} if resume else small(method, **{"milestones": 4} | more)
    cluster(FOUND, method=method, settings=settings, output=output, resume=resume, **arguments)
    return output


def kept(run: Path) -> list[Milestone]:
    return list(read_milestones(run / "milestones"))


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / "milestones").iterdir())}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("unbroken") / "run", starts=2)


def test_predictions_are_kept_at_the_start_and_after_each_step(unbroken: Path) -> None:
    found = kept(unbroken)
    assert [milestone.epoch for milestone in found] == [0, 0.5, 1, 1.5, 2]
    # Two starts, of which one is dropped in the last quarter.
    assert [milestone.passes for milestone in found] == [0, 1, 2, 3, 3.5]
    assert [milestone.feature is not None for milestone in found] == [True, False, True, False, True]
    for milestone in found:
        assert milestone.prediction.shape == (48, 3)
        np.testing.assert_allclose(milestone.prediction.sum(axis=1), 1, rtol=1e-5)
    assert not np.array_equal(found[0].prediction, found[-1].prediction)


def test_the_last_one_is_what_the_model_of_the_run_says(unbroken: Path) -> None:
    last, model = kept(unbroken)[-1], Model.load(unbroken, "cpu")
    model.confidence = None  # Its temperature is found after training.
    assert np.array_equal(last.prediction, model.predict_proba(FOUND.images))
    assert last.feature is not None
    assert np.array_equal(last.feature, np.load(unbroken / "embedding.npy"))


@pytest.mark.parametrize("method", ON_PICTURES)
def test_keeping_changes_nothing_about_how_any_method_learns(method: str, tmp_path: Path) -> None:
    states = []
    for wanted in (4, 0):
        fitted = fit(FOUND.images, config_of(method, milestones=wanted), milestones=tmp_path)
        states.append({name: tensor.numpy().tobytes() for name, tensor in fitted.model.method.state_dict().items()})
    assert states[0] == states[1]
    assert len(list(read_milestones(tmp_path))) == 5


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert not (run(tmp_path / "run", milestones=0) / "milestones").exists()


@pytest.mark.parametrize("batches", [1, 2, 3, 4])
def test_a_run_that_was_stopped_keeps_the_same(batches: int, unbroken: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    with pytest.raises(InterruptedRunError):
        run(output, starts=2, watcher=StopAfter(batches))
    # What was computed after the checkpoint, by a process that was killed later than it wrote one.
    (output / "milestones" / "000000000999.npz").write_bytes(b"of a life that is lost")
    run(output, resume=True)
    assert files(output) == files(unbroken)


def test_a_run_that_begins_again_forgets_what_was_kept(unbroken: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    with pytest.raises(InterruptedRunError):
        run(output, starts=2, watcher=StopAfter(3))
    for path in (output / "checkpoints").iterdir():
        path.unlink()
    run(output, resume=True)
    assert files(output) == files(unbroken)


def test_a_run_with_fewer_large_batches_than_steps_keeps_its_start_and_its_end(tmp_path: Path) -> None:
    found = kept(run(tmp_path / "run", milestones=9, epochs=1, batch_size=48))
    assert [(milestone.epoch, milestone.feature is not None) for milestone in found] == [(0, True), (1, True)]


def test_a_budget_is_divided_into_the_same_steps(tmp_path: Path) -> None:
    found = kept(run(tmp_path / "run", milestones=2, budget_passes=3.0))
    assert [milestone.passes for milestone in found] == [0, 1.5, 3]


def test_methods_without_epochs_and_runs_without_a_folder_refuse_it() -> None:
    with pytest.raises(
        UserError, match=r"milestones must be left out for the method 'kmeans', which has no epochs, got 3\."
    ):
        cluster(FOUND, 3, "kmeans", settings={"milestones": 3})
    with pytest.raises(UserError, match="milestones must be 0 where no run directory is written, got 3"):
        DCCM(3, settings={"milestones": 3, "mini_batch": 8}).fit(FOUND.images)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    write_milestone(tmp_path, Milestone(0, 0.0, np.ones((4, 2), np.float32), None))
    path = tmp_path / "000000000000.npz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"000000000000\.npz is broken \(.*\); take a sound copy, or begin the run"):
        list(read_milestones(tmp_path))
    np.savez(path, epoch=0.0, prediction=np.ones(4))
    with pytest.raises(UserError, match=r"is broken \(prediction must be \(N, K\), got \(4,\)\)"):
        list(read_milestones(tmp_path))


def test_a_moment_that_cannot_be_written_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No room on disk to write"):
        write_milestone(tmp_path, Milestone(0, 0.0, np.ones((4, 2), np.float32), None))
    assert list(tmp_path.iterdir()) == []
