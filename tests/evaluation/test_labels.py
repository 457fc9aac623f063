from pathlib import Path

import numpy as np
import pytest

from dccm.errors import UserError
from dccm.evaluation.labels import read_labels

NAMES = ["a.png", "deep/b.png"]


def table(path: Path, *rows: str) -> Path:
    path.write_text("path,label\n" + "".join(f"{row}\n" for row in rows))
    return path


def test_labels_are_matched_by_path_in_any_order(tmp_path: Path) -> None:
    path = table(tmp_path / "labels.csv", "deep/b.png,dog", "a.png,cat", "other.png,cow")
    assert read_labels(path, NAMES).tolist() == ["cat", "dog"]


@pytest.mark.parametrize("ways", [("./a.png", "deep//b.png"), ("deep/../a.png", "./deep/b.png")])
def test_paths_may_be_spelt_with_detours(tmp_path: Path, ways: tuple[str, str]) -> None:
    path = table(tmp_path / "labels.csv", f"{ways[0]},cat", f"{ways[1]},dog")
    assert read_labels(path, NAMES).tolist() == ["cat", "dog"]


def test_paths_may_lead_to_the_files_from_the_root_the_csv_or_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path.resolve() / "photos"
    absolute = table(tmp_path / "absolute.csv", f"{place}/a.png,cat", f"{place}/deep/b.png,dog")
    beside = table(tmp_path / "beside.csv", "photos/a.png,cat", "photos/deep/b.png,dog")
    (tmp_path / "labels").mkdir()
    here = table(tmp_path / "labels" / "here.csv", "photos/a.png,cat", "photos/deep/b.png,dog")
    for path in (absolute, beside):
        assert read_labels(path, NAMES, place).tolist() == ["cat", "dog"]
    with pytest.raises(UserError, match="has no label for 2 of the 2 images"):
        read_labels(here, NAMES, place)
    monkeypatch.chdir(tmp_path)
    assert read_labels(here, NAMES, place).tolist() == ["cat", "dog"]


def test_names_from_the_root_are_found_by_relative_labels(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    path = table(tmp_path / "labels.csv", "a.png,cat", "deep/b.png,dog")
    assert read_labels(path, [f"{root}/{name}" for name in NAMES], root / "lists").tolist() == ["cat", "dog"]


def test_a_file_of_excel_is_read(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_bytes("\ufeffpath,label\r\na.png,cat\r\ndeep/b.png,dog\r\n".encode())
    assert read_labels(tmp_path / "labels.csv", NAMES).tolist() == ["cat", "dog"]


@pytest.mark.parametrize("rows", [["a.png,cat"], ["a.png,cat", "deep/b.png,"], ["a.png,cat", "deep/b.png"]])
def test_an_image_without_a_label_is_named(tmp_path: Path, rows: list[str]) -> None:
    with pytest.raises(UserError, match=r"has no label for 1 of the 2 images, the first is \['deep/b.png'\]"):
        read_labels(table(tmp_path / "labels.csv", *rows), NAMES)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1.0, np.nan]), r"holds NaN for 1 of 2, first in row \[1\]"),
        (np.array([1, 2, 3]), r"one for each of the 2 images, .* holds \(3,\)"),
        (np.array([[1, 2]]), r"holds \(1, 2\)"),
        (np.array([1j, 2]), "must be numbers or texts, .* holds complex128"),
        (np.array(["2020", "2021"], "M8[Y]"), "must be numbers or texts"),
        (np.array([{}, {}], dtype=object), "Python objects, which are never loaded"),
    ],
)
def test_arrays_that_are_no_labels_are_refused(tmp_path: Path, array: np.ndarray, words: str) -> None:
    np.save(tmp_path / "labels.npy", array)
    with pytest.raises(UserError, match=words):
        read_labels(tmp_path / "labels.npy", NAMES)


def test_an_array_is_taken_in_order(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([3, 1]))
    assert read_labels(tmp_path / "labels.npy", NAMES).tolist() == [3, 1]
