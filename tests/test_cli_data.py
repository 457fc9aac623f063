"""The command with images of every kind."""

import csv
import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dccm.data.synthetic import bars
from tests.test_cli import QUICK, dccm

FOUND = bars(24, side=32, channels=3, classes=3)


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """A folder for each class; two images are the same, one is damaged."""
    folder = tmp_path / "classes"
    assert FOUND.labels is not None
    for name, image, label in zip(FOUND.names, FOUND.images, FOUND.labels):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / str(label) / f"{name}.png")
    (folder / "0" / "copy.png").write_bytes((folder / "0" / "bar-00000.png").read_bytes())
    (folder / "1" / "damaged.png").write_bytes((folder / "1" / "bar-00001.png").read_bytes()[:200])
    return folder


def result_of(output: Path) -> dict:
    return dict(json.loads((output / "result.json").read_text()))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_class_folders_are_scored_and_what_is_odd_is_listed(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert dccm("cluster", classes, "-k", 3, "-o", output, "--class-folders", *QUICK, monkeypatch=monkeypatch) == 0
    result = result_of(output)
    assert (result["n_images"], result["n_skipped"], result["n_duplicates"]) == (25, 1, 1)
    assert 0 < result["scores"]["acc"] <= 1
    assert [row["path"] for row in rows(output / "skipped.csv")] == ["1/damaged.png"]
    assert rows(output / "duplicates.csv") == [{"path": "0/copy.png", "same_as": "0/bar-00000.png"}]
    said = capsys.readouterr().out
    assert "1 file was skipped" in said
    assert "1 image is there more than once" in said


def test_without_the_flag_folders_are_no_labels(classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dccm("cluster", classes, "-k", 3, "-o", tmp_path / "out", *QUICK, monkeypatch=monkeypatch) == 0
    assert result_of(tmp_path / "out")["scores"] is None


def test_an_archive_gives_what_its_folder_gives_and_is_not_unpacked(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "archive" / "photos.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(classes.rglob("*.png")):
            file.write(path, path.relative_to(classes).as_posix())
    for source, name in ((classes, "a"), (archive, "b")):
        flags = ["-k", 3, "-o", tmp_path / name, "--class-folders", *QUICK]
        assert dccm("cluster", source, *flags, monkeypatch=monkeypatch) == 0
    assert result_of(tmp_path / "a")["scores"] == result_of(tmp_path / "b")["scores"] is not None
    assert (tmp_path / "a" / "assignments.csv").read_text() == (tmp_path / "b" / "assignments.csv").read_text()
    assert [path.name for path in archive.parent.iterdir()] == ["photos.zip"]


def test_parquet_with_labels_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, classes: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    files = sorted(classes.rglob("bar*.png"))
    column = [{"bytes": path.read_bytes(), "path": path.name} for path in files]
    labels = [int(path.parent.name) for path in files]
    parquet.write_table(pyarrow.table({"image": column, "label": labels}), tmp_path / "bars.parquet")
    output = tmp_path / "out"
    assert dccm("cluster", tmp_path / "bars.parquet", "-k", 3, "-o", output, *QUICK, monkeypatch=monkeypatch) == 0
    assert result_of(output)["scores"] is not None
    assert rows(output / "assignments.csv")[0]["path"] == files[0].name


def test_the_second_run_finds_the_images_prepared(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["-k", 3, "--cache", tmp_path / "cache", *QUICK]
    assert dccm("cluster", classes, "-o", tmp_path / "a", *flags, monkeypatch=monkeypatch) == 0
    monkeypatch.setattr("dccm.data.decoding.decode", lambda *_: pytest.fail("decoded again"))
    assert dccm("cluster", classes, "-o", tmp_path / "b", *flags, monkeypatch=monkeypatch) == 0
    assert list((tmp_path / "cache" / "images").iterdir())


def test_only_the_images_of_a_split_are_clustered_and_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    splits = np.repeat(["train", "test"], [20, 4])
    np.savez(tmp_path / "bars.npz", images=FOUND.images, splits=splits)
    flags = ["-k", 3, "-o", tmp_path / "out", "--split", "train", *QUICK]
    assert dccm("cluster", tmp_path / "bars.npz", *flags, monkeypatch=monkeypatch) == 0
    assert result_of(tmp_path / "out")["n_images"] == 20
    capsys.readouterr()
    assert dccm("prepare", tmp_path / "bars.npz", "--split", "test", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out.startswith("4 images of 32 x 32 x 3.")


def test_the_demo_clusters_the_digits_whatever_a_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    settings = [word for text in ("epochs=1", "starts=1", "uses=1") for word in ("--set", text)]
    assert dccm("demo", "-q", "--json", *settings, monkeypatch=monkeypatch) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["n_images"], said["dataset"], said["preset"]) == (1797, "digits", "fast")
    assert said["baseline"]["name"] == "k-means on pixels"
    assert (tmp_path / "dccm-demo" / "report.html").is_file()


def test_prepare_shows_the_first_of_many_and_says_how_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(60):
        Image.fromarray(FOUND.images[0]).save(tmp_path / f"{number:02}.png")
        (tmp_path / f"bad-{number:02}.png").write_bytes(b"nothing")
    assert dccm("prepare", tmp_path, "--cache", tmp_path / "cache", monkeypatch=monkeypatch) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 21 + 21 + 1
    assert lines[21] == "... and 40 more; --json lists all."
    assert lines[-1] == "60 files skipped, 59 duplicates."


def test_several_sources_are_clustered_as_one_and_a_list_is_typed_in(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts, output = [classes / "0", classes / "2"], tmp_path / "out"
    assert dccm("cluster", *parts, "-k", 2, "-o", output, *QUICK, monkeypatch=monkeypatch) == 0
    paths = [row["path"] for row in rows(output / "assignments.csv")]
    assert len(paths) == 17
    assert all(path.startswith((f"{parts[0]}/", f"{parts[1]}/")) for path in paths)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"classes/0/bar-00000.png\nclasses/0/copy.png\n")))
    capsys.readouterr()
    assert dccm("predict", output, "-", "-q", monkeypatch=monkeypatch) == 0
    said = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["path"] for row in said] == ["classes/0/bar-00000.png", "classes/0/copy.png"]
    assert said[0]["cluster"] == said[1]["cluster"]


def test_prepare_lists_what_is_odd_and_a_run_then_starts_at_once(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--image-size", 16, "--cache", tmp_path / "cache"]
    assert dccm("prepare", classes, *flags, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "25 images of 16 x 16 x 1." in said
    assert "skipped    1/damaged.png: " in said
    assert "duplicate  0/copy.png is the same as 0/bar-00000.png" in said
    monkeypatch.setattr("dccm.data.decoding.decode", lambda *_: pytest.fail("decoded again"))
    assert dccm("prepare", classes, *flags, "--json", monkeypatch=monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], len(found["skipped"]), len(found["duplicates"])) == (25, 1, 1)
    assert dccm("cluster", classes, "-k", 3, "-o", tmp_path / "out", *flags, *QUICK, monkeypatch=monkeypatch) == 0


def test_ctrl_c_while_preparing_says_how_to_go_on(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    flags = ["-k", 3, "-o", tmp_path / "out", "--cache", tmp_path / "cache"]
    monkeypatch.setattr("dccm.progress.Display.reading", interrupted)
    assert dccm("cluster", classes, *flags, *QUICK, monkeypatch=monkeypatch) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_padding_and_cropping_give_different_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wide"
    folder.mkdir()
    for name, image in zip(FOUND.names, FOUND.images):
        Image.fromarray(image[:16]).save(folder / f"{name}.png")
    for fit in ("crop", "pad"):
        flags = ["-k", 3, "-o", tmp_path / fit, "--set", f"fit={fit}", "--image-size", 16]
        assert dccm("cluster", folder, *flags, *QUICK, monkeypatch=monkeypatch) == 0
    crop, pad = (np.load(tmp_path / fit / "thumbnails.npz")["images"] for fit in ("crop", "pad"))
    assert (pad[:, :4] == 0).all()
    assert (crop[:, :4] > 0).any()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cluster", "cifar10", "--data-root", "{tmp}/none"], "cifar-10"),
        (["cluster", "imagenet10", "--data-root", "{tmp}/none"], "ImageNet"),
        (["cluster", "{tmp}/empty", "-k", "3"], "There is no image in"),
        (["cluster", "{tmp}/notes.doc", "-k", "3"], "is of no kind that can be read"),
        (["cluster", "{tmp}/list.txt", "-k", "3"], "exists"),
        (["cluster", "{tmp}/broken.zip", "-k", "3"], "cannot be read as an archive"),
        (["cluster", "{tmp}/broken.parquet", "-k", "3"], "cannot be read as parquet"),
    ],
)
def test_sources_without_images_end_in_one_sentence(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.txt").write_text("nowhere.png\n")
    for name in ("notes.doc", "broken.zip", "broken.parquet"):
        (tmp_path / name).write_bytes(b"nothing of use")
    # No test may reach the network.
    monkeypatch.setattr(
        "urllib.request.OpenerDirector.open", lambda *_, **__: (_ for _ in ()).throw(OSError("offline"))
    )
    filled = [word.format(tmp=tmp_path) for word in words]
    assert dccm(*filled, "-o", tmp_path / "out", *QUICK, monkeypatch=monkeypatch) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert "Traceback" not in error
    assert sys.argv[0] == "dccm"
