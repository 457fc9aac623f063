"""Commands that are ended, or whose folder goes away, at the worst moment: a sentence, and nothing lacks a part."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from dccm import UserError, cluster
from dccm.commands.predict import predict
from dccm.data.synthetic import bars
from dccm.experiments.data_sets import DataSets
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.targets import Need
from dccm.experiments.worker import Work, do
from dccm.runs.directory import RunDirectory
from dccm.training.loop import InterruptedRunError
from tests.test_cli import dccm

IMAGES = bars(24, side=8)
SETTINGS: dict[str, Any] = {
    "batch_size": 12, "mini_batch": 6, "critic_positions": 2, "starts": 1, "width": 0.1, "checkpoint_minutes": 0
}  # fmt: skip


def stopped(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "where", "said"),
    [
        (["report", "run"], "dccm.report.write_report", "give the same command again"),
        (["compare", "a", "b"], "dccm.commands.compare.compare", "give the same command again"),
        (["evaluate", "run", "--labels", "a"], "dccm.commands.evaluate.evaluate", "give the same command again"),
        (["serve", "run"], "dccm.commands.serve.serve", "All corrections are kept."),
        (["choose-k", "photos"], "dccm.commands.choose_k.choose_k", "goes on from there"),
        (["cluster", "photos", "-k", "3", "-o", "new"], "dccm.commands.cluster.cluster", "goes on from there"),
    ],
)
def test_ctrl_c_is_answered_by_every_command(
    words: list[str], where: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(where, stopped)
    assert dccm(*words, monkeypatch=monkeypatch) == 130
    error = capsys.readouterr().err
    assert error.startswith("\nInterrupted. ")
    assert said in error
    assert "Traceback" not in error


def test_ctrl_c_in_the_estimate_of_a_grid_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise InterruptedRunError(None)

    monkeypatch.setattr("dccm.experiments.estimate.train", interrupted)
    words = ["table2", "--datasets", "digits", "--limit-images", "64", "--methods", "ae", "--budget", "passes:1"]
    assert dccm("reproduce", *words, "-o", tmp_path / "new", monkeypatch=monkeypatch) == 130
    assert "the same command goes on from there" in capsys.readouterr().err


def test_a_folder_that_is_deleted_under_a_run_is_not_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, write = tmp_path / "run", RunDirectory.write_config

    def written(self: RunDirectory, *content: Any) -> None:
        write(self, *content)
        monkeypatch.setattr(RunDirectory, "write_history", lambda *_: None)

    def gone(*_: object) -> None:
        shutil.rmtree(output)

    monkeypatch.setattr(RunDirectory, "write_config", written)
    monkeypatch.setattr(RunDirectory, "write_left_out", gone)
    with pytest.raises(
        UserError, match=r"The folder .*run was deleted or moved while a run wrote into it. Move it back"
    ):
        cluster(IMAGES, 3, output=output, preset="paper", settings=SETTINGS, epochs=2, device="cpu")
    assert not output.exists()


def test_what_a_killed_command_left_is_named(tmp_path: Path) -> None:
    cluster(IMAGES, 3, "kmeans", output=tmp_path / "run", device="cpu")
    left = tmp_path / "new"
    left.mkdir()
    (left / "run.lock").write_text("process 1 on elsewhere")
    (left / "assignments.csv").write_text("path,cluster\n")
    with pytest.raises(
        UserError, match="holds what another command writes, or left when it was killed.*or delete that"
    ):
        predict(tmp_path / "run", IMAGES, output=left)


def test_a_full_disk_is_a_sentence_whoever_finds_it(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.open()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    need = Need(Request(limit=64).spec("kmeans", "digits"))
    state, said = do(Work(results, DataSets(), full), need, lambda *_: None)
    assert state == "stopped"
    assert said == f"No room on disk to write into {tmp_path}; finished runs are kept. " + (
        "Free some space, then run the same command again."
    )
    assert not list(results.failed.iterdir())


def test_a_clock_that_goes_back_changes_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {"preset": "paper", "settings": SETTINGS, "epochs": 2, "device": "cpu", "seed": 0}
    cluster(IMAGES, 3, output=tmp_path / "sound", **arguments)
    now = 2e9

    def earlier() -> float:
        nonlocal now
        now -= 1e6
        return now

    monkeypatch.setattr("time.time", earlier)
    found = cluster(IMAGES, 3, output=tmp_path / "back", **arguments)
    assert found.result.cost.seconds >= 0
    same = ("assignments.csv", "model/weights.safetensors", "embedding.npy")
    assert [(tmp_path / "back" / name).read_bytes() for name in same] == [
        (tmp_path / "sound" / name).read_bytes() for name in same
    ]
