import csv
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dccm import cli
from dccm.data.synthetic import bars
from tests.data.published.official_files import write_cifar100

QUICK = ["--epochs", "2", "--quiet"]
QUICK += ["--set", "batch_size=20", "--set", "mini_batch=8", "--set", "critic_positions=2", "--set", "starts=1"]
RUN_FILES = {
    "assignments.csv", "assignments.parquet", "checkpoints", "config.toml", "duplicates.csv", "embedding.npy",
    "embedding.parquet", "history.jsonl", "judgement.json", "map_thumbnails.npz", "model", "near_duplicates.csv",
    "report.html", "result.json", "skipped.csv", "source.json", "thumbnails.npz",
}  # fmt: skip


def dccm(*words: object, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["dccm", *map(str, words)])
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of grey images, one of them broken."""
    folder = tmp_path_factory.mktemp("photos")
    for name, image in zip(bars(24, side=32).names, bars(24, side=32).images):
        Image.fromarray(image[..., 0]).save(folder / f'{name}, "odd" 🐟.png')
    (folder / "broken.png").write_bytes(b"nothing")
    return folder


@pytest.fixture(scope="module")
def finished(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        assert dccm("cluster", photos, "-k", 3, "-o", output, "--image-size", 16, *QUICK, monkeypatch=patch) == 0
    return output


@pytest.fixture
def array(tmp_path: Path) -> Path:
    found = bars(20, side=8)
    assert found.labels is not None
    np.savez(tmp_path / "bars.npz", images=found.images, labels=found.labels)
    return tmp_path / "bars.npz"


def test_a_run_directory_holds_all_that_was_promised(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == RUN_FILES
    with (finished / "assignments.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert rows[0]["path"] == 'bar-00000, "odd" 🐟.png'
    assert {int(row["cluster"]) for row in rows} <= {0, 1, 2}
    assert all(0 <= float(row["confidence"]) <= 1 for row in rows)
    result = json.loads((finished / "result.json").read_text())
    assert result["scores"] is None
    assert result["settings"]["n_clusters"] == 3
    assert result["settings"]["device"] in ("cpu", "cuda")  # What was used, not "auto".
    assert result["versions"]["torch"]
    assert "broken.png,not an image" in (finished / "skipped.csv").read_text()
    assert len((finished / "history.jsonl").read_text().splitlines()) == 2


def test_parquet_holds_what_the_csv_holds(finished: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow comes with dccm[data]")
    table = parquet.read_table(finished / "assignments.parquet").to_pydict()
    assert len(table["path"]) == 24
    embedding = parquet.read_table(finished / "embedding.parquet").to_pydict()
    assert len(embedding["feature"][0]) == 64


def test_new_images_are_assigned_as_the_run_assigned_them(
    finished: Path, photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dccm("predict", finished, photos, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    assert said.out == (finished / "assignments.csv").read_text()
    assert "skipped broken.png" in said.err


def test_predicting_shows_how_it_gets_on(
    finished: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["predict", finished, photos, "-o", tmp_path / "new", "--cache", tmp_path / "cache"]
    assert dccm(*words, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    assert "reading images 25/25" in said.err
    assert "assigning  100%" in said.err
    assert said.out.startswith("24 images assigned, 1 skipped.\n")
    assert str(tmp_path / "new" / "assignments.csv") in said.out
    assert str(tmp_path / "new" / "report.html") in said.out


def test_data_sets_are_assigned_by_name_and_split(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = bars(12, side=32, channels=3).images
    write_cifar100(tmp_path / "cifar-100-python", images, fine=[0] * 12, coarse=[0] * 12, train=8)
    words = ["predict", finished, "cifar100", "--data-root", tmp_path, "--variant", "fine", "-q"]
    for split, count in (([], 12), (["--split", "train"], 8), (["--split", "test"], 4)):
        assert dccm(*words, *split, monkeypatch=monkeypatch) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1 + count


def test_an_output_that_is_taken_is_refused_before_images_are_read(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refused(["predict", finished, tmp_path / "nowhere", "-o", finished], capsys, monkeypatch)
    assert "holds a run already, and nothing is overwritten" in said
    said = refused(["predict", finished, tmp_path / "nowhere", "-o", tmp_path / "new"], capsys, monkeypatch)
    assert "There is no file, folder or data set" in said
    assert not (tmp_path / "new").exists()


def test_predictions_go_into_a_folder_or_to_json(
    finished: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dccm("predict", finished, photos, "-o", tmp_path / "new", "--json", monkeypatch=monkeypatch) == 0
    assert len(json.loads(capsys.readouterr().out)["assignments"]) == 24
    assert (tmp_path / "new" / "assignments.csv").read_bytes() == (finished / "assignments.csv").read_bytes()


def test_labels_in_the_file_give_scores_after_training(
    array: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dccm("cluster", array, "-k", 4, "-o", tmp_path / "run", "--json", *QUICK, monkeypatch=monkeypatch) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["scores"]) == {"acc", "balanced_acc", "nmi", "ari", "bcubed_precision", "bcubed_recall"}
    np.save(tmp_path / "labels.npy", np.load(array)["labels"])
    assert (
        dccm("evaluate", tmp_path / "run", "--labels", tmp_path / "labels.npy", "--json", monkeypatch=monkeypatch) == 0
    )
    sureness = said["confidence"]["scores"]
    wanted = said["scores"] | {name: sureness[name] for name in ("calibration_error", "acc_surest_80")}
    assert json.loads(capsys.readouterr().out) == pytest.approx(wanted, abs=1e-4)


def test_labels_of_a_csv_are_matched_by_path(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (finished / "assignments.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([("path", "label"), *((row["path"], f"class {row['cluster']}") for row in reversed(rows))])
    assert dccm("evaluate", finished, "--labels", tmp_path / "labels.csv", monkeypatch=monkeypatch) == 0
    assert "acc               1.0000" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["methods"], ["datasets"], ["presets"], ["presets", "paper", "--dataset", "cifar10"]]
)
def test_lists_are_printed_as_tables_and_as_json(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dccm(*words, monkeypatch=monkeypatch) == 0
    table = capsys.readouterr().out
    assert dccm(*words, "--json", monkeypatch=monkeypatch) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(str(next(iter(row.values()))) in table for row in rows)


def test_the_report_is_written_anew(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (finished / "report.html").read_bytes()
    (finished / "report.html").unlink()
    assert dccm("report", finished, monkeypatch=monkeypatch) == 0
    assert (finished / "report.html").read_bytes() == page


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys; sys.argv = ['dccm', '--help']\nfrom dccm.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    )
    code += "assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("words", [["datasets"], ["evaluate", "{run}", "--labels", "{labels}"], ["report", "{run}"]])
def test_what_only_reads_does_not_wait_for_torch(words: list[str], finished: Path, tmp_path: Path) -> None:
    rows = (finished / "assignments.csv").read_text().replace("confidence", "label", 1)
    (tmp_path / "labels.csv").write_text(rows)
    filled = [word.format(run=finished, labels=tmp_path / "labels.csv") for word in words]
    code = f"import sys; sys.argv = ['dccm', *{filled!r}]\nfrom dccm.cli import main\n"
    code += "try: main()\nexcept SystemExit as stop: assert not stop.code\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def refused(words: list[object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The one sentence on which a command ends with exit code 2."""
    assert dccm(*words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("dccm: ")
    assert "Traceback" not in said.err
    return last


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-k", 1], "n_clusters must be at least 2, got 1"),
        (["-k", 21], "n_clusters must not exceed the number of images, 20, got 21"),
        (["-k", 4, "--set", "colour=blue"], "No setting 'colour'"),
        (["-k", 4, "--preset", "papr"], "No preset 'papr'. Did you mean 'paper'?"),
        (["-k", 4, "-m", "dcm"], "No method 'dcm'. Did you mean 'dccm'?"),
        (["-k", 4, "--dataset", "cifar"], "No data set 'cifar'."),
        (["-k", 4, "--budget", "soon"], "budget must be minutes:M or passes:P, got 'soon'"),
        (["-k", 4, "--device", "abacus"], "device 'abacus' cannot be used"),
        (["-k", 4, "--resume"], "There is no run in "),
    ],
)
def test_bad_settings_end_in_one_sentence_and_exit_code_2(
    words: list[object],
    expected: str,
    array: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "run"
    said = refused(["cluster", array, "-o", output, "--set", "mini_batch=8", *words], capsys, monkeypatch)
    assert expected in said
    assert not output.exists()


def test_a_folder_that_holds_a_run_is_not_overwritten(
    finished: Path, array: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    said = refused(["cluster", array, "-k", 4, "-o", finished, *QUICK], capsys, monkeypatch)
    assert "holds a run already, and nothing is overwritten" in said
    said = refused(["cluster", array, "-o", finished, "--resume", *QUICK], capsys, monkeypatch)
    assert "was begun with checksum" in said
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before


def test_a_folder_with_other_files_and_a_file_are_no_output(
    array: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert "holds other files" in refused(["cluster", array, "-o", tmp_path / "mine", *QUICK], capsys, monkeypatch)
    assert "is a file" in refused(["cluster", array, "-o", array, *QUICK], capsys, monkeypatch)


def test_no_room_on_disk_ends_in_one_sentence(
    array: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = refused(["cluster", array, "-k", 4, "-o", tmp_path / "run", *QUICK], capsys, monkeypatch)
    assert "No room on disk to write" in said
    assert "resume a run that was training" in said


def test_what_the_system_refuses_ends_in_one_sentence(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forbidden(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", forbidden)
    for words in (
        ["report", finished],
        ["evaluate", finished, "--labels", "x.npy"],
        ["export", finished, "--to", "csv"],
    ):
        assert dccm(*words, monkeypatch=monkeypatch) == 2
        said = capsys.readouterr().err
        assert said.startswith("dccm: The system says 'Permission denied' of '")
        assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [("nowhere", "There is no file, folder or data set"), (".", "There is no image in")],
)
def test_sources_that_cannot_be_read_are_refused(
    source: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert expected in refused(["cluster", source, "-k", 3, "-o", "run", *QUICK], capsys, monkeypatch)
    assert not (tmp_path / "run").exists()


def test_predict_and_evaluate_refuse_what_is_no_run(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "There is no model in" in refused(["predict", tmp_path, tmp_path], capsys, monkeypatch)
    labels = tmp_path / "labels.csv"
    assert "There is no file" in refused(["evaluate", finished, "--labels", labels], capsys, monkeypatch)
    labels.write_text("file,class\n")
    said = refused(["evaluate", finished, "--labels", labels], capsys, monkeypatch)
    assert "labels.csv is broken (its first line names no column 'path' and no column 'label'); write" in said
    labels.write_text("path,label\n")
    assert "has no label for 24 of the 24" in refused(["evaluate", finished, "--labels", labels], capsys, monkeypatch)
    assert "There is no assignments.csv in" in refused(["evaluate", tmp_path, "--labels", labels], capsys, monkeypatch)
