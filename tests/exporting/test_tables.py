import json
from pathlib import Path

import numpy as np
import pytest

import dccm
from dccm.exporting.sheets import harmless
from dccm.files import read_csv
from dccm.runs.contents import NO_CLUSTER
from dccm.runs.directory import RunDirectory
from tests.exporting.runs import COUNT, NAMED, array_run, folder_run

COLUMNS = ("path", "cluster", "name", "confidence", "corrected", "outlier", "wrong")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_run(tmp_path_factory.mktemp("run"))


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_json_lines_are_the_run_as_corrected(run: Path, tmp_path: Path) -> None:
    exported = dccm.export(run, "jsonl", tmp_path / "rows.jsonl")
    rows = lines_of(tmp_path / "rows.jsonl")
    assert (exported.images, len(rows)) == (COUNT, COUNT)
    first = RunDirectory(run).read_assignments().clusters.tolist()
    assert {row["cluster"] for row in rows if first[rows.index(row)] == 7} == {1}
    assert {row["name"] for row in rows if row["cluster"] == 1} == {NAMED}
    assert rows[2]["cluster"] == 5
    assert [row["corrected"] for row in rows[:3]] == [False, False, True]
    assert rows[7]["corrected"], "It was merged."
    assert [row["wrong"] for row in rows[:3]] == [True, False, False]
    embedding = RunDirectory(run).read_embedding()
    assert np.array_equal(np.array([row["embedding"] for row in rows], np.float32), embedding)


def test_names_that_are_no_text_come_back_exactly(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    directory = RunDirectory(run)
    assignments = directory.read_assignments()
    directory.write_assignments(assignments._replace(paths=["\udcff.png", *list(assignments.paths)[1:]]))
    dccm.export(run, "jsonl", tmp_path / "rows.jsonl", embedding=False)
    assert lines_of(tmp_path / "rows.jsonl")[0]["path"] == "\udcff.png"
    assert "embedding" not in lines_of(tmp_path / "rows.jsonl")[0]


def test_parquet_has_types(run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    dccm.export(run, "parquet", tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet")
    assert [str(field.type) for field in table.schema][:-1] == [
        *("string", "int64", "string", "double", "bool", "bool", "bool")
    ]
    assert table.schema.field("embedding").type.value_type == "float"
    dccm.export(run, "jsonl", tmp_path / "rows.jsonl")
    assert table.to_pylist() == lines_of(tmp_path / "rows.jsonl")


def test_csv_is_harmless_for_spreadsheets_unless_it_is_wanted_plain(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "csv", tmp_path / "rows.csv")
    dccm.export(run, "csv", tmp_path / "plain.csv", plain=True)
    rows = list(read_csv(tmp_path / "rows.csv", COLUMNS, "", exactly=True))
    assert {row["name"] for row in rows if row["cluster"] == "1"} == {f"'{NAMED}"}
    plain = list(read_csv(tmp_path / "plain.csv", COLUMNS, "", exactly=True))
    assert {row["name"] for row in plain if row["cluster"] == "1"} == {NAMED}
    assert [row["path"] for row in rows] == [row["path"] for row in plain]


@pytest.mark.parametrize("beginning", ["=", "+", "-", "@", "\t", "\r"])
def test_what_begins_like_a_formula_is_made_text(beginning: str) -> None:
    assert harmless(f"{beginning}cmd|' /C calc'!A0") == f"'{beginning}cmd|' /C calc'!A0"
    assert harmless(f"a{beginning}b") == f"a{beginning}b"


def test_an_embedding_in_a_csv_has_a_column_for_each_number(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "csv", tmp_path / "rows.csv", embedding=True)
    header = (tmp_path / "rows.csv").read_text("utf-8").splitlines()[0].split(",")
    assert header == [*COLUMNS, *(f"embedding_{number}" for number in range(64))]


def test_classes_that_the_source_knows_are_labels(tmp_path: Path) -> None:
    dccm.export(array_run(tmp_path), "jsonl", tmp_path / "rows.jsonl")
    assert [row["label"] for row in lines_of(tmp_path / "rows.jsonl")] == [number % 10 for number in range(COUNT)]


def test_labels_of_a_file(run: Path, tmp_path: Path) -> None:
    paths = RunDirectory(run).read_assignments().paths
    lines = ["path,label", *(f"{path},class {row % 3}" for row, path in enumerate(paths))]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    dccm.export(run, "jsonl", tmp_path / "rows.jsonl", labels=tmp_path / "labels.csv")
    assert [row["label"] for row in lines_of(tmp_path / "rows.jsonl")[:3]] == ["class 0", "class 1", "class 2"]


def test_skipped_files_are_listed_apart(run: Path, tmp_path: Path) -> None:
    exported = dccm.export(run, "csv", tmp_path / "rows.csv")
    listed = list(read_csv(tmp_path / "rows.skipped.csv", ("path", "reason"), "", exactly=True))
    assert len(listed) == len(exported.skipped) == 60


def test_rejected_images_have_no_cluster(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    directory = RunDirectory(run)
    assignments = directory.read_assignments()
    directory.write_assignments(assignments._replace(rejected=np.arange(COUNT) == 4))
    dccm.export(run, "jsonl", tmp_path / "rows.jsonl")
    assert lines_of(tmp_path / "rows.jsonl")[4]["cluster"] == NO_CLUSTER


def test_what_predict_wrote_is_exported_under_its_names(tmp_path: Path) -> None:
    run = folder_run(tmp_path)
    directory, later = RunDirectory(run), RunDirectory(tmp_path / "later")
    later.path.mkdir()
    later.write_assignments(directory.read_assignments())
    later.write_cluster_names({3: "Threes"})
    dccm.export(later.path, "jsonl", tmp_path / "rows.jsonl")
    assert lines_of(tmp_path / "rows.jsonl")[3]["name"] == "Threes"
