import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dccm
from dccm.errors import UserError
from dccm.files import read_csv
from dccm.runs.directory import RunDirectory
from tests.exporting.runs import COUNT, array_run, folder_run, pixels_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_run(tmp_path_factory.mktemp("run"))


def index_of(folder: Path) -> list[dict[str, str]]:
    return list(read_csv(folder / "index.csv", ("file", "path", "cluster"), ""))


def test_folders_hold_copies_by_corrected_cluster(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "folders", tmp_path / "out")
    rows = index_of(tmp_path / "out")
    assert len(rows) == COUNT
    for row in rows:
        copy = tmp_path / "out" / row["file"]
        assert copy.read_bytes() == (run.parent / "images" / row["path"]).read_bytes()
        assert not copy.is_symlink()
    names = {row["file"].partition("/")[0] for row in rows}
    assert {"_=Ones & sevens", "cluster-5"} <= names
    assert "cluster-7" not in names, "It was merged."
    assert len(list((tmp_path / "out").glob("*/*.png"))) == COUNT


def test_symlinks_lead_to_the_images(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "symlinks", tmp_path / "out")
    links = [tmp_path / "out" / row["file"] for row in index_of(tmp_path / "out")]
    assert all(link.is_symlink() and link.resolve().parent == (run.parent / "images").resolve() for link in links)


def test_symlinks_of_what_is_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"symlinks need images that are files of their own, .* come from a array"):
        dccm.export(array_run(tmp_path), "symlinks", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pixels_become_png(tmp_path: Path) -> None:
    run = array_run(tmp_path)
    dccm.export(run, "folders", tmp_path / "out")
    pixels = np.load(tmp_path / "digits.npz")["images"]
    for row in index_of(tmp_path / "out"):
        assert row["file"].endswith(f"/{row['path']}.png")
        assert np.array_equal(pixels_of(tmp_path / "out" / row["file"]), pixels[int(row["path"]), ..., 0])


def test_files_of_one_name_are_numbered_in_the_order_of_the_run(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    directory, images = RunDirectory(run), tmp_path / "images"
    paths = []
    for number in range(COUNT):
        (images / f"day{number:02d}").mkdir()
        (images / f"{number:04d}.png").rename(images / f"day{number:02d}" / "IMG.png")
        paths.append(f"day{number:02d}/IMG.png")
    directory.write_assignments(directory.read_assignments()._replace(paths=paths))
    for name in ("first", "second"):
        dccm.export(run, "folders", tmp_path / name)
    assert index_of(tmp_path / "first") == index_of(tmp_path / "second")
    in_five = [row["file"] for row in index_of(tmp_path / "first") if row["cluster"] == "5"]
    assert in_five[:2] == ["cluster-5/IMG.png", "cluster-5/IMG (2).png"]


def test_imagefolder_has_a_class_for_each_cluster_and_a_list(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "imagefolder", tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "metadata.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == COUNT
    assert all((tmp_path / "out" / row["file_name"]).is_file() for row in rows)
    assert len(rows[0]["embedding"]) == 64
    classes = [path for path in (tmp_path / "out").iterdir() if path.is_dir()]
    assert all(any(path.iterdir()) for path in classes), "torchvision refuses a class without images."


def test_images_that_are_gone_are_listed_and_the_others_written(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    (tmp_path / "images" / "0003.png").unlink()
    exported = dccm.export(run, "folders", tmp_path / "out")
    assert [missing.path for missing in exported.missing] == ["0003.png"]
    assert len(index_of(tmp_path / "out")) == COUNT - 1
    [listed] = read_csv(tmp_path / "out" / "missing.csv", ("path", "reason"), "", exactly=True)
    assert listed == {"path": "0003.png", "reason": "it is not there any more"}
    assert json.loads((tmp_path / "out" / "export.json").read_text())["images"] == COUNT - 1


def test_images_that_were_moved_are_found_where_the_user_says(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    (tmp_path / "images").rename(tmp_path / "moved")
    with pytest.raises(
        UserError, match=r"images of .*run are not where they were: .*images.* with --images, or export csv"
    ):
        dccm.export(run, "folders", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    dccm.export(run, "folders", tmp_path / "out", images=tmp_path / "moved")
    assert len(index_of(tmp_path / "out")) == COUNT


def test_other_images_are_refused(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    shutil.rmtree(tmp_path / "images")
    (tmp_path / "images").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "images" / "other.png")
    with pytest.raises(UserError, match=rf"is of {COUNT} images, and none is in .*images any more"):
        dccm.export(run, "folders", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "run"]
