import shutil
import zipfile
from pathlib import Path

import pytest

from dccm.data.datasets import open_benchmark
from dccm.data.published.trees import LabelledFiles
from dccm.errors import UserError
from tests.data.published.official_files import jpeg, write_tiny_imagenet

TRAIN = [
    "train/n01443537/images/n01443537_0.JPEG",
    "train/n01443537/images/n01443537_1.JPEG",
    "train/n02085620/images/n02085620_0.JPEG",
    "train/n02085620/images/n02085620_1.JPEG",
]


def small_tiny_imagenet(root: Path, packed: bool) -> None:
    folder = write_tiny_imagenet(root / "tiny-imagenet-200")
    if packed:
        shutil.make_archive(str(folder), "zip", root, folder.name)
        shutil.rmtree(folder)


def opened(root: Path, variant: str = "") -> LabelledFiles:
    source = open_benchmark("tiny_imagenet", root, variant=variant, download=False)
    assert isinstance(source, LabelledFiles)
    return source


def content(item: Path | bytes) -> bytes:
    return item.read_bytes() if isinstance(item, Path) else item


@pytest.mark.parametrize("packed", [False, True])
def test_the_training_images_are_what_is_clustered(tmp_path: Path, packed: bool) -> None:
    small_tiny_imagenet(tmp_path, packed)
    source = opened(tmp_path)
    assert list(source.names) == TRAIN
    assert source.labels is not None
    assert source.labels.tolist() == [0, 0, 1, 1]
    assert source.splits is None
    assert list(source.class_names) == ["goldfish, Carassius auratus", "Chihuahua"]
    assert content(source.read(1)) == jpeg(11)
    assert source.fingerprint()


@pytest.mark.parametrize("packed", [False, True])
def test_validation_images_join_as_test_images_for_the_probe(tmp_path: Path, packed: bool) -> None:
    small_tiny_imagenet(tmp_path, packed)
    source = opened(tmp_path, "val")
    assert list(source.names) == [*TRAIN, "val/images/val_0.JPEG", "val/images/val_1.JPEG"]
    assert source.labels is not None
    assert source.labels.tolist() == [0, 0, 1, 1, 1, 0]
    assert source.splits is not None
    assert source.splits.tolist() == ["train"] * 4 + ["test"] * 2
    assert content(source.read(5)) == jpeg(101)
    assert source.place != opened(tmp_path).place


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("wnids.txt", "tiny-imagenet-200 must hold wnids.txt"),
        ("train/n01443537", r"must hold JPEG files in train/n01443537/images, .* \(1 of 2 classes are without\)"),
        ("val/val_annotations.txt", "must hold val/val_annotations.txt"),
        ("val/images/val_1.JPEG", "and lacks 1 of 2, such as val/images/val_1.JPEG"),
    ],
)
def test_missing_files_are_named(tmp_path: Path, lost: str, words: str) -> None:
    small_tiny_imagenet(tmp_path, packed=False)
    path = tmp_path / "tiny-imagenet-200" / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(UserError, match=words):
        opened(tmp_path, "val")


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    small_tiny_imagenet(tmp_path, packed=True)
    archive = tmp_path / "tiny-imagenet-200.zip"
    archive.write_bytes(archive.read_bytes()[:-50])
    with pytest.raises(UserError, match="tiny-imagenet-200.zip is damaged"):
        opened(tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_a_list_of_classes_that_is_no_text_ends_in_a_sentence(tmp_path: Path, packed: bool) -> None:
    folder = write_tiny_imagenet(tmp_path / "tiny-imagenet-200")
    (folder / "wnids.txt").write_bytes(b"n01443537\xff\xfe\n")
    if packed:
        shutil.make_archive(str(folder), "zip", tmp_path, folder.name)
        shutil.rmtree(folder)
    with pytest.raises(UserError, match=r"is broken \(.*can't decode byte.*\); delete it, and get the official file"):
        opened(tmp_path)


def test_a_flipped_byte_in_the_archive_ends_in_a_sentence(tmp_path: Path) -> None:
    small_tiny_imagenet(tmp_path, packed=True)
    archive = tmp_path / "tiny-imagenet-200.zip"
    with zipfile.ZipFile(archive) as whole:
        start = whole.getinfo("tiny-imagenet-200/wnids.txt").header_offset
    content = bytearray(archive.read_bytes())
    content[start + 30 + len("tiny-imagenet-200/wnids.txt")] ^= 0xFF
    archive.write_bytes(content)
    with pytest.raises(UserError, match=r"tiny-imagenet-200\.zip is broken .*; delete it, and get the official file"):
        opened(tmp_path)
