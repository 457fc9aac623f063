import csv
import json
from pathlib import Path

import numpy as np
import pytest

import dccm
from dccm.data.read import open_source
from dccm.errors import UserError
from dccm.runs.directory import RunDirectory
from tests.exporting.runs import COUNT, array_run, folder_run, pixels_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_run(tmp_path_factory.mktemp("run"))


def test_a_data_set_of_hugging_face_holds_the_images_and_is_read_by_dccm(run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    dccm.export(run, "datasets", tmp_path / "out")
    source = open_source(tmp_path / "out")
    paths = list(RunDirectory(run).read_assignments().paths)
    assert list(source.names) == paths
    assert source.read(4) == (run.parent / "images" / paths[4]).read_bytes()
    schema = parquet.read_schema(next((tmp_path / "out").glob("data/*.parquet")))
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert list(features) == schema.names
    assert features["image"] == {"_type": "Image"}
    assert "data/*.parquet" in (tmp_path / "out" / "README.md").read_text()


def test_pixels_in_a_data_set_are_png_under_such_a_name(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    dccm.export(array_run(tmp_path), "datasets", tmp_path / "out")
    cell = parquet.read_table(next((tmp_path / "out").glob("data/*.parquet")))["image"][3].as_py()
    assert cell["path"] == "3.png"
    assert cell["bytes"].startswith(b"\x89PNG")


def test_fiftyone_finds_each_label_by_the_name_of_a_file(tmp_path: Path) -> None:
    dccm.export(array_run(tmp_path), "fiftyone", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "labels.json").read_text())
    names = sorted(path.stem for path in (tmp_path / "out" / "data").iterdir())
    assert sorted(document["labels"]) == names
    label = document["labels"]["1"]
    assert document["classes"][label["label"]] == "cluster-1"
    assert label["attributes"]["ground_truth"] == 1
    assert "label" not in label["attributes"], "FiftyOne would take it for the class."
    assert 0 < label["confidence"] <= 1
    assert np.load(tmp_path / "out" / "embedding.npy").shape == (COUNT, 64)


def test_files_in_one_folder_differ_in_more_than_the_suffix(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    images, directory = tmp_path / "images", RunDirectory(run)
    (images / "0001.png").rename(images / "0000.bmp")
    paths = list(directory.read_assignments().paths)
    directory.write_assignments(directory.read_assignments()._replace(paths=[paths[0], "0000.bmp", *paths[2:]]))
    dccm.export(run, "fiftyone", tmp_path / "out")
    assert {"0000.png", "0000 (2).bmp"} <= {path.name for path in (tmp_path / "out" / "data").iterdir()}


def test_lightly_has_a_box_around_each_image_in_the_folder_of_its_cluster(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "lightly", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "annotations.json").read_text())
    names = {category["id"]: category["name"] for category in document["categories"]}
    for image, box in zip(document["images"], document["annotations"], strict=True):
        pixels = pixels_of(tmp_path / "out" / "images" / image["file_name"])
        assert pixels.shape[:2] == (image["height"], image["width"]) == (box["bbox"][3], box["bbox"][2])
        assert box["image_id"] == image["id"]
        assert names[box["category_id"]].strip("=")[:4] in image["file_name"]
    rows = list(csv.reader((tmp_path / "out" / "embeddings.csv").open()))
    assert rows[0][:2] == ["filenames", "embedding_0"]
    assert [row[0] for row in rows[1:]] == [image["file_name"] for image in document["images"]]


def test_embedding_atlas_gets_places_neighbours_and_small_pictures(run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    exported = dccm.export(run, "embedding-atlas", tmp_path / "atlas.parquet")
    rows = parquet.read_table(tmp_path / "atlas.parquet").to_pylist()
    assert exported.notes == [
        "Open it with: embedding-atlas atlas.parquet --x x --y y --neighbors neighbors --image image"
    ]
    assert all(abs(row["x"]) < 3 and abs(row["y"]) < 3 for row in rows)
    assert all(row["neighbors"]["ids"][0] == number for number, row in enumerate(rows)), "Itself is nearest."
    assert all(row["image"]["bytes"][:3] in (b"\xff\xd8\xff", b"\x89PN") for row in rows)


def test_a_map_is_of_use_without_pictures(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run = folder_run(tmp_path)
    (tmp_path / "images").rename(tmp_path / "moved")
    exported = dccm.export(run, "embedding-atlas", tmp_path / "atlas.parquet", embedding=False)
    names = parquet.read_schema(tmp_path / "atlas.parquet").names
    assert not {"image", "embedding"} & set(names)
    assert {"x", "y", "neighbors"} <= set(names)
    assert exported.notes[0].startswith("There are no pictures in it.")


def test_a_map_needs_the_embedding(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    RunDirectory(run).embedding.unlink()
    with pytest.raises(UserError, match="embedding-atlas needs the embedding of a run, and there is none"):
        dccm.export(run, "embedding-atlas", tmp_path / "atlas.parquet")
    assert not (tmp_path / "atlas.parquet").exists()
