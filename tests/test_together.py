"""Several processes as torchrun starts them: same bits after a kill, one that writes, one sentence for a mistake."""

import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from tests.processes import Command

TINY = ["-k", "3", "--preset", "paper", "--epochs", "2"]
for setting in ("width=0.05", "batch_size=20", "mini_batch=10", "critic_positions=1", "checkpoint_minutes=0"):
    TINY += ["--set", setting]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (60, 12, 12, 1), dtype=np.uint8))
    return path


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return int(listening.getsockname()[1])


class Started:
    """Two commands, with what torchrun tells the processes that it starts.

    Args:
        folder: For what they say.
        patch: Changes the environment.
        words: Of each command.
        restarts: How often torchrun has begun them anew.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *words: list[str], restarts: int = 0) -> None:
        told = {"WORLD_SIZE": 2, "MASTER_ADDR": "localhost", "MASTER_PORT": free_port(), "TORCHELASTIC_RUN_ID": "job"}
        told |= {"TORCHELASTIC_RESTART_COUNT": restarts, "OMP_NUM_THREADS": 1, "DCCM_WORKER_SECONDS": 10}
        self.commands = []
        for rank, command in enumerate(words):
            for name, value in (told | {"RANK": rank, "LOCAL_RANK": rank}).items():
                patch.setenv(name, str(value))
            self.commands.append(Command(command, folder / f"said{rank}"))

    def end(self) -> list[tuple[int, str]]:
        return [command.end() for command in self.commands]


def test_killed_processes_are_replaced_and_end_with_the_same_bits(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, killed = ([["cluster", str(images), *TINY, "-o", str(tmp_path / name)]] * 2 for name in ("whole", "killed"))
    (code, said), second = Started(tmp_path, monkeypatch, *whole).end()
    assert (code, *second) == (0, 0, ""), said
    assert said.count("Assignments:") == 1
    started = Started(tmp_path, monkeypatch, *killed)
    while not list((tmp_path / "killed" / "checkpoints").glob("*2.safetensors")):
        assert started.commands[0].running
        time.sleep(0.01)
    started.commands[1].signal(signal.SIGKILL)
    (code, _), (lost, _) = started.end()
    assert (code, lost) == (1, -signal.SIGKILL)
    (code, said), (other, _) = Started(tmp_path, monkeypatch, *killed, restarts=1).end()
    assert (code, other) == (0, 0), said
    assert "2 processes on 1 machine go on from the last checkpoint" in said
    for name in ("history.jsonl", "assignments.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (["--seed", "7"], "same settings, such as seed"),
        (["-m", "kmeans"], "In process 1 on"),
    ],
)
def test_processes_that_were_told_different_things_end_with_one_sentence(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: list[str], sentence: str
) -> None:
    usual = ["cluster", str(images), *TINY, "-o", str(tmp_path / "run")]
    (code, said), (other, nothing) = Started(tmp_path, monkeypatch, usual, usual + changed).end()
    assert (code, other, nothing) == (2, 2, "")
    assert sentence in said
    assert "process 1 on " + socket.gethostname() in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (["-m", "kmeans"], "processes must be 1 for the method 'kmeans', got 2: it learns without gradient steps"),
        (["--set", "mini_batch=3"], "mini_batch must hold two images for each process, 4 for 2, got 3"),
    ],
)
def test_what_several_processes_cannot_do_is_said_once(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: list[str], sentence: str
) -> None:
    words = ["cluster", str(images), "-k", "3", *changed, "-o", str(tmp_path / "run")]
    (code, said), second = Started(tmp_path, monkeypatch, words, words).end()
    assert (code, *second) == (2, 2, "")
    assert said.count("dccm: ") == 1
    assert sentence in said
    assert not (tmp_path / "run").exists()
