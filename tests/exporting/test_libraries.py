"""Exports, opened by the libraries that they are for, where these are installed."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dccm
from tests.exporting.runs import COUNT, NAMED, folder_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_run(tmp_path_factory.mktemp("run"))


def library(name: str) -> Any:
    try:
        return import_module(name)
    except Exception as error:  # It is not there, or what it needs is of another version.
        pytest.skip(f"{name} cannot be imported: {error}"[:200])


@pytest.mark.parametrize("form", ["datasets", "imagefolder"])
def test_hugging_face_loads_it(form: str, run: Path, tmp_path: Path) -> None:
    loaded = library("datasets").load_dataset(
        str(dccm.export(run, form, tmp_path / "out").output), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(loaded) == COUNT
    assert loaded[1]["name"] == NAMED
    assert loaded[1]["image"].size == (80, 80)
    assert len(loaded[1]["embedding"]) == 64


def test_pandas_reads_the_tables(run: Path, tmp_path: Path) -> None:
    pandas = library("pandas")
    for form, read in (("csv", pandas.read_csv), ("parquet", pandas.read_parquet)):
        table = read(dccm.export(run, form, tmp_path / f"rows.{form}").output)
        assert len(table) == COUNT
        assert table["cluster"].dtype == "int64"
        assert table["corrected"].sum() > 0
    lines = pandas.read_json(dccm.export(run, "jsonl", tmp_path / "rows.jsonl").output, lines=True)
    assert (lines["cluster"] == table["cluster"]).all()


@pytest.mark.slow
def test_fiftyone_imports_it(run: Path, tmp_path: Path) -> None:
    importers = library("fiftyone.utils.data.importers")
    output = dccm.export(run, "fiftyone", tmp_path / "out").output
    importer = importers.FiftyOneImageClassificationDatasetImporter(dataset_dir=str(output))
    importer.setup()
    labels = {Path(path).name: label for path, _, label in importer}
    assert len(labels) == COUNT
    assert labels["0001.png"].label == NAMED
    assert labels["0002.png"]["corrected"] is True


@pytest.mark.slow
def test_lightly_studio_loads_it(run: Path, tmp_path: Path) -> None:
    studio = library("lightly_studio")
    output = dccm.export(run, "lightly", tmp_path / "out").output
    studio.db_manager.connect(db_file=str(tmp_path / "studio.db"))
    data_set = studio.ImageDataset.create("exported")
    data_set.add_samples_from_coco(
        annotations_json=output / "annotations.json",
        images_path=output / "images",
        embed=False,
        embed_annotations=False,
        tag_depth=1,
    )
    samples = list(data_set)
    assert len(samples) == COUNT
    assert {a.class_name for sample in samples for a in sample.annotations} >= {NAMED, "cluster-5"}


@pytest.mark.slow
def test_embedding_atlas_makes_a_page_of_it(run: Path, tmp_path: Path) -> None:
    cli = library("embedding_atlas.cli")
    from click.testing import CliRunner

    output = dccm.export(run, "embedding-atlas", tmp_path / "atlas.parquet").output
    words = [str(output), "--x", "x", "--y", "y", "--neighbors", "neighbors", "--image", "image"]
    done = CliRunner().invoke(cli.main, [*words, "--export-application", str(tmp_path / "page")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "page" / "index.html").is_file()
