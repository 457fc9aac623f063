"""`dccm serve` and `dccm corrections`, as they are typed."""

import builtins
import json
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from dccm.corrections.change import Change
from dccm.corrections.of_run import open_log
from dccm.files import cache_folder
from dccm.gallery.server import is_loopback, listen, token_of
from dccm.runs.directory import RunDirectory
from tests.gallery.runs import served, write_gallery_run
from tests.test_cli import dccm


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_gallery_run(tmp_path, 60)


def change(run: Path, *changes: Change) -> None:
    directory = RunDirectory(run)
    result = directory.read_result()
    log = open_log(directory, directory.read_assignments(result), result.n_clusters)
    log.write([("ann", one) for one in changes])
    log.close()


def test_corrections_go_out_and_into_another_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(run, Change(kind="rename", cluster=1, name="ones"), Change(kind="move", images=(3, 4), cluster=1))
    lines = tmp_path / "corrections.jsonl"
    assert dccm("corrections", run, "--export", lines, monkeypatch=monkeypatch) == 0
    assert [json.loads(line)["kind"] for line in lines.read_text().splitlines()] == ["rename", "move"]
    other = write_gallery_run(tmp_path / "other", 60)
    assert dccm("corrections", other, "--import", lines, monkeypatch=monkeypatch) == 0
    assert "2 changes taken over" in capsys.readouterr().out
    assert dccm("corrections", other, "--export", "-", monkeypatch=monkeypatch) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[1])
    assert (said["who"], said["images"]) == ("ann", [[3, "0003.png"], [4, "0004.png"]])


def test_a_run_without_corrections_exports_nothing_and_gets_no_file(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dccm("corrections", run, "--export", "-", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == ""
    assert not RunDirectory(run).corrections.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "either --export FILE or --import FILE"),
        (["--import", "missing.jsonl"], "missing.jsonl cannot be read"),
    ],
)
def test_corrections_are_refused_in_one_sentence(
    run: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dccm("corrections", run, *words, monkeypatch=monkeypatch) == 2
    assert said in capsys.readouterr().err


def test_other_machines_are_let_in_on_purpose_only(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dccm("serve", run, "--host", "0.0.0.0", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert "add --allow-remote" in said
    assert "nothing on the way is encrypted" in said


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.1.2.3", False), ("a.b", False)],
)
def test_what_only_this_machine_can_reach(host: str, own: bool) -> None:
    assert is_loopback(host) == own


def test_a_missing_library_is_named_with_the_way_to_get_it(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("uvicorn"):
            raise ImportError(name)
        return real(name, *rest)

    for known in [name for name in sys.modules if name.startswith("uvicorn")]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setattr(builtins, "__import__", without)
    assert dccm("serve", run, monkeypatch=monkeypatch) == 2
    assert "pip install 'dccm[serve]'" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_what_is_no_run_is_refused(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn comes with dccm[serve]")
    assert dccm("serve", tmp_path / folder, monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.startswith("dccm: There is no ")


def test_a_port_that_is_taken_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn comes with dccm[serve]")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert dccm("serve", run, "--port", port, monkeypatch=monkeypatch) == 2
    assert f"port {port}: Address already in use. Choose another one with --port" in capsys.readouterr().err


def test_without_a_port_the_next_free_one_is_taken() -> None:
    with listen("127.0.0.1", None) as first, listen("127.0.0.1", None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]


def test_the_token_stays_and_only_its_owner_can_read_it(run: Path) -> None:
    token = token_of(run)
    assert len(token) >= 32
    assert token_of(run) == token
    assert token_of(run.parent) != token
    (path,) = [path for path in (cache_folder() / "serve").iterdir() if path.read_text() == token]
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(token.encode() in file.read_bytes() for file in run.rglob("*") if file.is_file())


def test_a_served_run_says_its_address_and_answers(run: Path) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn comes with dccm[serve]")
    from urllib.request import urlopen

    with served(run, 8873) as (server, address):
        assert address == f"http://127.0.0.1:8873/{token_of(run)}/"
        with urlopen(f"{address}api/run") as answer:
            assert json.load(answer)["images"] == 60
        server.terminate()
        assert server.wait(timeout=30) in (0, -15)
