import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dccm.errors import UserError
from dccm.report import write_report
from dccm.runs.directory import RunDirectory
from tests.report.runs import change_result, write_run


@pytest.mark.parametrize("name", ["result.json", "history.jsonl", "assignments.csv", "thumbnails.npz"])
def test_a_missing_file_is_named_with_the_way_out(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path)
    (run / name).unlink()
    with pytest.raises(UserError) as caught:
        write_report(RunDirectory(run))
    assert str(caught.value) == f'There is no {name} in {run}; "dccm cluster" writes a run directory.'


def test_a_missing_run_directory_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r'There is no run directory .*nowhere; "dccm cluster" writes one'):
        write_report(RunDirectory(tmp_path / "nowhere"))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def drop_last_line(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def pickle_inside(path: Path) -> None:
    np.savez(path, images=np.array([{}], dtype=object), row=np.array([0]))


def float_images(path: Path) -> None:
    np.savez(path, images=np.zeros((1, 8, 8, 1)), row=np.array([0]))


def damage_compressed(path: Path) -> None:
    np.savez_compressed(path, images=np.zeros((90, 8, 8, 1), np.uint8), row=np.arange(90))
    content = bytearray(path.read_bytes())
    content[60:90] = b"\xff" * 30
    path.write_bytes(content)


def row_too_far(path: Path) -> None:
    np.savez(path, images=np.zeros((1, 8, 8, 1), np.uint8), row=np.array([1797]))


@pytest.mark.parametrize(
    ("name", "harm", "reason"),
    [
        ("result.json", cut_short, "is broken"),
        ("result.json", lambda path: path.write_text("[]"), "not a JSON object"),
        ("result.json", lambda path: path.write_text("{}"), "method is missing"),
        ("result.json", lambda path: change_result(path.parent, n_images="many"), "n_images must be a whole number"),
        ("result.json", lambda path: change_result(path.parent, seed=True), "seed must be a whole number from 0 up"),
        ("result.json", lambda path: change_result(path.parent, baseline={"scores": [1]}), "baseline must be null, or"),
        ("result.json", lambda path: change_result(path.parent, scores={"acc": "high"}), "scores must be an object of"),
        ("result.json", lambda path: change_result(path.parent, cost={"seconds": 1.0}), "cost must be an object with"),
        ("result.json", lambda path: change_result(path.parent, warnings="one"), "warnings must be a list"),
        ("history.jsonl", cut_short, "is broken"),
        ("history.jsonl", lambda path: path.write_text('{"loss": 1.0}\n'), "record 1 has no epoch"),
        ("assignments.csv", drop_last_line, "1796 images, but result.json counts 1797"),
        ("assignments.csv", lambda path: path.write_text("name,group\n"), "first line is not path,cluster,confidence"),
        ("assignments.csv", lambda path: path.write_text("path,cluster,confidence\na\n"), "exactly 3 values"),
        ("assignments.csv", lambda path: path.write_text(path.read_text().replace(",3,", ",10,")), "outside 0 to 9"),
        ("thumbnails.npz", cut_short, "is broken"),
        ("thumbnails.npz", lambda path: path.write_bytes(b""), "is broken"),
        ("thumbnails.npz", pickle_inside, "is broken"),
        ("thumbnails.npz", damage_compressed, "is broken"),
        ("thumbnails.npz", float_images, "images must be uint8"),
        ("thumbnails.npz", row_too_far, "a row that assignments.csv does not have"),
        ("skipped.csv", lambda path: path.write_text("what\n"), "first line is not path,reason"),
    ],
)
def test_a_broken_file_is_named_with_the_way_out(
    tmp_path: Path, name: str, harm: Callable[[Path], object], reason: str
) -> None:
    run = write_run(tmp_path)
    harm(run / name)
    with pytest.raises(UserError) as caught:
        write_report(RunDirectory(run))
    message = str(caught.value)
    assert message.startswith(f"{run / name} is broken (")
    assert reason in message
    assert message.endswith("; take a sound copy, or write the folder anew.")
    assert not (run / "report.html").exists()


def test_a_full_disk_leaves_the_old_page_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path)
    (run / "report.html").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"^No room on disk to write .*report\.html; .*Free some space"):
        write_report(RunDirectory(run))
    assert (run / "report.html").read_text() == "old"
    assert not (run / "report.html.partial").exists()
