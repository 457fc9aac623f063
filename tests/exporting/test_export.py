import errno
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dccm
from dccm.cli import app
from dccm.cli.completion import formats
from dccm.errors import UserError
from dccm.exporting import format_names
from dccm.exporting.formats import Format, find_format
from dccm.runs.directory import RunDirectory
from tests.exporting.runs import COUNT, folder_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_run(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("name", format_names())
def test_each_format_is_found_by_its_name(name: str) -> None:
    assert isinstance(find_format(name), Format)
    assert find_format(name).purpose
    assert list(formats()).count(name) == 1


def test_an_unknown_format_names_the_nearest(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"No format 'parket'. Did you mean 'parquet'\? See \"dccm export --help\"."):
        dccm.export(run, "parket", tmp_path / "out")


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    RunDirectory(run).config.write_text("[run]\n")
    RunDirectory(run).result.unlink()
    with pytest.raises(UserError, match=r"is not finished: result.json is missing. Finish it with .*--resume"):
        dccm.export(run, "csv", tmp_path / "out.csv")


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no run directory"):
        dccm.export(tmp_path / "none", "csv", tmp_path / "out.csv")


@pytest.mark.parametrize("where", ["out.csv", "model/../deep/out.csv", "."])
def test_a_run_directory_stays_as_it_is(where: str, run: Path) -> None:
    with pytest.raises(UserError, match=r"lies in the run .*, which stays as it is"):
        dccm.export(run, "csv", run / where)


def test_a_full_disk_leaves_nothing_behind(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == "0009.png":
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match=r"No room on disk to write .*out; nothing of it is left behind"):
        dccm.export(run, "folders", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_wrote(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    done = CliRunner().invoke(app, ["export", str(run), "--to", "csv", "-o", str(output), "-q"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        f"{COUNT} images as csv; 60 files skipped by the run, listed apart.",
        f"Output: {output}",
    ]
    again = CliRunner().invoke(app, ["export", str(run), "--to", "csv", "-o", str(output), "-q"])
    assert isinstance(again.exception, UserError)
    done = CliRunner().invoke(
        app, ["export", str(run), "--to", "csv", "-o", str(output), "-q", "--overwrite", "--json"]
    )
    answer = json.loads(done.stdout)
    assert (answer["format"], answer["images"], answer["output"]) == ("csv", COUNT, str(output))
    assert answer["skipped"][0] == {"path": "bad,0.png", "reason": "cut short"}


def test_what_nothing_is_said_about_is_named_after_the_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [str(dccm.export(run, name).output) for name in ("jsonl", "folders")] == ["run.jsonl", "run-folders"]


def test_progress_is_told(run: Path, tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["export", str(run), "--to", "folders", "-o", str(tmp_path / "out")])
    assert "writing images  100%" in told.stderr
