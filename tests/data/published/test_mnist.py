from pathlib import Path

import numpy as np
import pytest

from dccm.data.datasets import open_benchmark
from dccm.data.published.mnist import Digits
from dccm.errors import UserError
from tests.data.published.official_files import corner, idx, write_mnist

LABELS = np.array([5, 0, 4, 7, 2])


def small_mnist(folder: Path, packed: bool = True) -> np.ndarray:
    images = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    images[1] = corner(28)[..., 0]
    write_mnist(folder, images, LABELS, train=3, packed=packed)
    return images


def opened(root: Path) -> Digits:
    source = open_benchmark("mnist", root, download=False)
    assert isinstance(source, Digits)
    return source


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("home", ["", "mnist", "MNIST/raw"])
def test_images_labels_and_splits_are_read(tmp_path: Path, home: str, packed: bool) -> None:
    images = small_mnist(tmp_path / home, packed)
    source = opened(tmp_path)
    assert np.array_equal(source.images[..., 0], images)
    assert source.read(1)[:3, :7, 0].min() == 255
    assert source.labels is not None
    assert source.labels.tolist() == LABELS.tolist()
    assert source.splits is not None
    assert source.splits.tolist() == ["train"] * 3 + ["test"] * 2
    assert (source.names[0], source.names[4]) == ("train/00000", "test/00001")


def test_the_spelling_with_a_dot_is_read_too(tmp_path: Path) -> None:
    small_mnist(tmp_path, packed=False)
    for path in list(tmp_path.iterdir()):
        path.rename(tmp_path / path.name.replace("-idx", ".idx"))
    assert len(opened(tmp_path)) == 5


def test_a_missing_file_is_missed(tmp_path: Path) -> None:
    small_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UserError, match="MNIST is not in .*: the four files .* are not all there; put https://"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must begin with the magic number 2051 of an idx file, got nothing"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x05abcde", "magic number 2051 of an idx file, got 00000801"),
        (b"\x00\x00\x08\x03\x00\x00", "magic number 2051"),
        (idx(np.zeros((3, 28, 28), dtype=np.uint8))[:-1], "must hold 2,352 values, as its head says, it holds 2,351"),
        (idx(np.zeros((2, 28, 28), dtype=np.uint8)), "must hold a label for each of the 2 images .* it holds 3"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    small_mnist(tmp_path, packed=False)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(UserError, match=words):
        opened(tmp_path)


@pytest.mark.parametrize("kept", [5, 100])
def test_cut_archives_are_refused(tmp_path: Path, kept: int) -> None:
    small_mnist(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match="train-images-idx3-ubyte.gz is damaged .* get the official file"):
        opened(tmp_path)
