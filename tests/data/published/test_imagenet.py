import os
from pathlib import Path

import numpy as np
import pytest

from dccm.data.datasets import DATASETS, open_benchmark
from dccm.data.published.imagenet import classes
from dccm.data.published.trees import LabelledFiles
from dccm.errors import UserError
from tests.data.published.official_files import write_images


def small_imagenet(folder: Path, subset: str = "imagenet10") -> None:
    for number, wnid in enumerate(classes(subset)):
        write_images(folder / wnid, [f"{wnid}_{place}.JPEG" for place in range(1 + number % 2)], number)
    write_images(folder / "n01440764", ["n01440764_1.JPEG"])  # A class of neither subset.


def opened(root: Path, subset: str = "imagenet10") -> LabelledFiles:
    source = open_benchmark(subset, root)
    assert isinstance(source, LabelledFiles)
    return source


@pytest.mark.parametrize("subset", ["imagenet10", "imagenet_dog15"])
def test_the_lists_have_as_many_classes_as_table_1(subset: str) -> None:
    assert len(classes(subset)) == int(DATASETS[subset].clusters)
    assert DATASETS[subset].train == 1300 * len(classes(subset))


@pytest.mark.parametrize("home", ["", "train", "ILSVRC/Data/CLS-LOC/train", "imagenet/train"])
def test_the_classes_of_the_subset_are_read_from_the_train_folder(tmp_path: Path, home: str) -> None:
    small_imagenet(tmp_path / home)
    source = opened(tmp_path)
    assert source.labels is not None
    assert source.labels.tolist() == [0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9]
    assert source.names[2] == "n02085936/n02085936_1.JPEG"
    assert source.read(2) == tmp_path / home / "n02085936" / "n02085936_1.JPEG"
    assert source.class_names[1] == "Maltese dog"
    assert source.splits is None


def test_two_subsets_of_one_folder_have_different_places(tmp_path: Path) -> None:
    small_imagenet(tmp_path / "train")
    small_imagenet(tmp_path / "train", "imagenet_dog15")
    dogs = opened(tmp_path, "imagenet_dog15")
    assert dogs.labels is not None
    assert np.unique(dogs.labels).tolist() == list(range(15))
    assert dogs.place != opened(tmp_path).place


def test_the_fingerprint_changes_with_a_file(tmp_path: Path) -> None:
    small_imagenet(tmp_path)
    before = opened(tmp_path).fingerprint()
    os.utime(tmp_path / "n04285008" / "n04285008_0.JPEG", (1, 1))
    assert opened(tmp_path).fingerprint() != before


def test_without_its_files_imagenet_says_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="ImageNet-10 is not in .*registration.*image-net.org.*train/n02056570 .*data_root"
    ):
        opened(tmp_path)


def test_missing_classes_are_named(tmp_path: Path) -> None:
    small_imagenet(tmp_path)
    for name in ("n04285008", "n07747607"):
        for path in (tmp_path / name).iterdir():
            path.unlink()
    (tmp_path / "n07747607").rmdir()
    with pytest.raises(UserError, match="for each class of imagenet10, and has none for n04285008, n07747607"):
        opened(tmp_path)
