"""Several processes as torchrun starts them: same bits after a kill, one that writes, one sentence for a mistake."""

import json
import re
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from dccm.commands.cluster import cluster
from dccm.corrections.change import Change
from dccm.corrections.of_run import corrected, open_log
from dccm.runs.directory import RunDirectory
from tests.commands.test_vectors import coloured
from tests.networks.weights import write_weights
from tests.processes import Command
from tests.test_cli import dccm

SMALL = {"width": 0.05, "batch_size": 20, "mini_batch": 10, "critic_positions": 1, "checkpoint_minutes": 0, "epochs": 2}
TINY = ["-k", "3", "--preset", "paper"]
for name, value in SMALL.items():
    TINY += ["--set", f"{name}={value}"]


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


def both(folder: Path, patch: pytest.MonkeyPatch, *words: str) -> str:
    """What the first of two processes says of a command that has to succeed."""
    (code, said), (other, nothing) = Started(folder, patch, [*words], [*words]).end()
    assert (code, other, nothing) == (0, 0, ""), said + nothing
    return said


def test_processes_choose_one_number_of_clusters(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [word if word != "3" else "2..4" for word in TINY]
    said = both(tmp_path, monkeypatch, "cluster", str(images), *words, "-o", str(tmp_path / "run"))
    choice = json.loads((tmp_path / "run" / "choice.json").read_text())
    assert f"K = {choice['suggestion']} suggested from 2..4" in said


def test_processes_learn_on_from_what_people_corrected(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = cluster(images, 3, output=tmp_path / "run", preset="paper", settings=SMALL).directory
    log = open_log(directory, directory.read_assignments(), 3)
    log.write([("ann", Change(kind="move", images=(0, 5, 50), cluster=1))])
    log.close()
    words = ["cluster", str(images), "--improve", str(tmp_path / "run"), "--budget", "passes:2"]
    both(tmp_path, monkeypatch, *words, "-o", str(tmp_path / "better"))
    better = RunDirectory(tmp_path / "better")
    assert json.loads(better.result.read_text())["improved"]["labels"] == 3
    assert np.flatnonzero(corrected(better, better.read_assignments(), 3).placed).tolist() == [0, 5, 50]


def test_processes_train_a_block_of_a_pretrained_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "images.npy", coloured(18).images)
    encoder = f"file:{write_weights(tmp_path / 'own.safetensors')}"
    words = ["cluster", str(tmp_path / "images.npy"), "-k", "3", "--encoder", encoder, "--epochs", "2"]
    for setting in ("finetune=1", "mini_batch=6", "checkpoint_minutes=0"):
        words += ["--set", setting]
    said = both(tmp_path, monkeypatch, *words, "-o", str(tmp_path / "run"))
    assert "18 images in 3 clusters" in said


def test_more_processes_than_cores_are_refused_before_any_begins(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dccm.commands.processes._launch", lambda *_: pytest.fail("Processes began."))
    words = ["cluster", images, "-k", 3, "--processes", 1024, "-o", tmp_path / "run"]
    assert dccm(*words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert re.search(r"processes must be \d+ at most, as this machine has \d+ cores? and \d+ GPUs?, got 1024\.", said)
    assert not (tmp_path / "run").exists()
