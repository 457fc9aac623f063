import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dccm.errors import UserError
from dccm.locks import held
from dccm.runs.directory import RunDirectory

HOLD = """
import os, sys
from pathlib import Path
from dccm.runs.directory import RunDirectory
with RunDirectory(sys.argv[1]).filling(resume=sys.argv[2] == "resume"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path, how: str) -> subprocess.Popen:
    """Another process that fills a folder until its input ends."""
    words = [sys.executable, "-c", HOLD, str(folder), how]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("how", ["begin", "resume"])
def test_the_second_process_is_told_who_fills_a_folder(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    process = holder(folder, how)
    try:
        with pytest.raises(UserError) as caught, RunDirectory(folder).filling(resume=how == "resume"):
            pass
    finally:
        process.communicate()
    text = str(caught.value)
    assert text.startswith(f"{folder} is being filled by process {process.pid} on {socket.gethostname()}. Wait until")
    with RunDirectory(folder).filling(resume=how == "resume"):
        assert (folder / "run.lock").read_text() == f"process {os.getpid()} on {socket.gethostname()}"
    assert not list(folder.iterdir())


def test_a_crash_frees_a_folder(tmp_path: Path) -> None:
    process = holder(tmp_path, "begin")
    process.kill()
    process.communicate()
    assert (tmp_path / "run.lock").exists()
    with RunDirectory(tmp_path).filling():
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_that_another_process_has_just_filled_is_refused(tmp_path: Path) -> None:
    with RunDirectory(tmp_path).filling():
        (tmp_path / "config.toml").write_text("")
    with pytest.raises(UserError, match="holds a run already"), RunDirectory(tmp_path).filling():
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_a_lock_that_its_holder_deletes_is_not_taken_for_held(tmp_path: Path) -> None:
    for _ in range(3):
        with held(tmp_path / "lock", "it"):  # noqa: SIM117 (the inner one fails)
            with pytest.raises(UserError, match="it is being filled"), held(tmp_path / "lock", "it"):
                pass
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes by name are Unix's")
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_a_stranger_put_in_the_place_of_a_lock_is_refused(tmp_path: Path, kind: str) -> None:
    letter, run = tmp_path / "letter", tmp_path / "run"
    letter.write_text("dear")
    run.mkdir()
    lock = run / "run.lock"
    match kind:
        case "link":
            lock.symlink_to(letter)
        case "pipe":
            os.mkfifo(lock)
        case _:
            lock.mkdir()
    refused = pytest.raises(UserError, match=r"Cannot write .*run\.lock: .*Choose another output folder")
    with refused, RunDirectory(run).filling(resume=True):
        pass
    assert letter.read_text() == "dear"
