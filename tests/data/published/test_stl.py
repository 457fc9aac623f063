from pathlib import Path

import numpy as np
import pytest

from dccm.data.datasets import open_benchmark
from dccm.data.published.stl import STL
from dccm.errors import UserError
from tests.data.published.official_files import corner, pack, random_images, write_stl10

LABELS = [0, 9, 3, 4, 5]


def small_stl10(root: Path) -> np.ndarray:
    images = random_images(8, 96)
    images[1] = images[6] = corner(96)
    write_stl10(root / "stl10_binary", images[:2], images[2:5], images[5:], LABELS)
    return images


def opened(root: Path, variant: str = "") -> STL:
    source = open_benchmark("stl10", root, variant=variant, download=False)
    assert isinstance(source, STL)
    return source


@pytest.mark.parametrize("packed", [False, True])
def test_labelled_images_are_read_with_columns_turned_into_rows(tmp_path: Path, packed: bool) -> None:
    images = small_stl10(tmp_path)
    if packed:
        pack(tmp_path / "stl10_binary", tmp_path / "stl10_binary.tar.gz")
    source = opened(tmp_path)
    assert np.array_equal(source.images, images[:5])
    assert np.array_equal(source.read(1), corner(96))
    assert source.labels is not None
    assert source.labels.tolist() == LABELS
    assert source.splits is not None
    assert source.splits.tolist() == ["train"] * 2 + ["test"] * 3
    assert list(source.names) == ["train/00000", "train/00001", "test/00000", "test/00001", "test/00002"]
    assert source.class_names[LABELS[1]] == "truck"
    assert source.fingerprint()


@pytest.mark.parametrize("packed", [False, True])
def test_unlabelled_images_are_read_without_labels(tmp_path: Path, packed: bool) -> None:
    images = small_stl10(tmp_path)
    if packed:
        pack(tmp_path / "stl10_binary", tmp_path / "stl10_binary.tar.gz")
    source = opened(tmp_path, "unlabelled")
    assert np.array_equal(source.images, images[5:])
    assert (source.labels, source.splits, len(source)) == (None, None, 3)


def test_unlabelled_images_of_a_folder_stay_in_their_file(tmp_path: Path) -> None:
    small_stl10(tmp_path)
    assert isinstance(opened(tmp_path, "unlabelled").images, np.memmap)


@pytest.mark.parametrize(
    ("file", "kept", "words"),
    [
        ("train_X.bin", 30_000, r"train_X.bin must hold 27,648 bytes for each image, and its 30,000 bytes are no"),
        ("train_X.bin", 0, r"train_X.bin must hold 27,648 bytes"),
        ("train_X.bin", 27_648, r"train_y.bin must hold a number from 1 to 10 for each of 1 images, .* it has 2 bytes"),
        ("test_y.bin", 2, r"test_y.bin must hold a number from 1 to 10 for each of 3 images, .* it has 2 bytes"),
    ],
)
def test_cut_files_are_refused(tmp_path: Path, file: str, kept: int, words: str) -> None:
    small_stl10(tmp_path)
    path = tmp_path / "stl10_binary" / file
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match=words):
        opened(tmp_path)


@pytest.mark.parametrize("label", [0, 11])
def test_labels_out_of_range_are_refused(tmp_path: Path, label: int) -> None:
    small_stl10(tmp_path)
    (tmp_path / "stl10_binary" / "train_y.bin").write_bytes(bytes([1, label]))
    with pytest.raises(UserError, match="train_y.bin must hold a number from 1 to 10"):
        opened(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    small_stl10(tmp_path)
    (tmp_path / "stl10_binary" / "unlabeled_X.bin").unlink()
    assert len(opened(tmp_path)) == 5
    with pytest.raises(UserError, match="stl10_binary must hold unlabeled_X.bin, and does not"):
        opened(tmp_path, "unlabelled")
