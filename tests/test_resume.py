import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dccm.data.synthetic import bars
from dccm.training.checkpoint import CheckpointFolder
from tests.processes import Command, done

SETTINGS = ["batch_size=24", "mini_batch=8", "checkpoint_minutes=0", "critic_positions=4", "uses=1", "starts=2"]
SETTINGS += ["milestones=5", "width=0.25"]
SAME = ("history.jsonl", "assignments.csv", "model/weights.safetensors", "model/model.json")
EPOCHS = 4
BATCHES = 5
"""Large batches in an epoch of 120 images."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "bars.npz"
    found = bars(120, side=8)
    np.savez(path, images=found.images, labels=np.asarray(found.labels))
    return path


def words(images: Path, output: Path, *more: str) -> list[str]:
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    return ["cluster", str(images), "-k", "4", "-o", str(output), "--epochs", str(EPOCHS), *sets, *more]


def finish(images: Path, output: Path) -> str:
    return done(words(images, output, "--resume"), output.parent / "said.txt")


@pytest.fixture(scope="module")
def unbroken(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("unbroken") / "run"
    done(words(images, output), output.parent / "said.txt")
    return output


def end_in_the_middle_of_an_epoch(images: Path, output: Path, how: signal.Signals) -> str:
    """Start a run and send it a signal when it is in its third epoch; what it said."""
    command = Command(words(images, output), output.parent / "interrupted.txt")
    folder = CheckpointFolder(output / "checkpoints")
    limit = time.monotonic() + 120
    while not (folder.paths() and int(folder.paths()[0].stem) >= 2 * BATCHES + 2):
        assert time.monotonic() < limit
        assert command.running, "The run ended before it was told to."
        time.sleep(0.002)
    command.signal(how)
    code, said = command.end()
    assert code != 0
    return said


@pytest.fixture(scope="module")
def killed(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed in its third epoch."""
    output = tmp_path_factory.mktemp("killed") / "run"
    end_in_the_middle_of_an_epoch(images, output, signal.SIGKILL)
    return output


def assert_same(first: Path, second: Path) -> None:
    for name in SAME:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    kept = [{path.name: path.read_bytes() for path in (run / "milestones").iterdir()} for run in (first, second)]
    assert len(kept[0]) == 6  # At the start, and after each of five steps.
    assert kept[0] == kept[1]


def test_a_killed_run_resumes_to_the_same_bits_and_needs_no_settings_again(
    images: Path, unbroken: Path, killed: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    shutil.copytree(killed, output)
    assert not (output / "result.json").exists()
    assert int(CheckpointFolder(output / "checkpoints").paths()[0].stem) < EPOCHS * BATCHES
    typed = [sys.executable, "-m", "dccm", "cluster", str(images), "-o", str(output), "--resume"]
    subprocess.run(typed, check=True, capture_output=True)
    assert_same(output, unbroken)


def test_a_truncated_newest_checkpoint_gives_way_to_the_one_before(
    images: Path, unbroken: Path, killed: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    shutil.copytree(killed, output)
    newest = CheckpointFolder(output / "checkpoints").paths()[0]
    newest.write_bytes(newest.read_bytes()[:100])
    said = finish(images, output)
    assert "Going back to the checkpoint before it" in said
    assert_same(output, unbroken)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_writes_a_checkpoint_and_says_how_to_go_on(
    images: Path, unbroken: Path, tmp_path: Path, how: signal.Signals
) -> None:
    output = tmp_path / "run"
    said = end_in_the_middle_of_an_epoch(images, output, how)
    assert "Interrupted. The checkpoint is" in said
    assert "--resume" in said
    assert "Traceback" not in said
    finish(images, output)
    assert_same(output, unbroken)
