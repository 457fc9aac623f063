from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.data.images import ImageSet
from dccm.data.read import open_source, read_images
from dccm.data.sources.arrays import ArraySource
from dccm.data.sources.subset import Subset
from dccm.errors import UserError
from tests.data.pictures import noise, photos


def listed(folder: Path, *splits: str) -> Path:
    photos(folder, len(splits))
    rows = "".join(f"{number:02}.png,{split},{number}\n" for number, split in enumerate(splits))
    (folder / "list.csv").write_text(f"path,split,label\n{rows}")
    return folder / "list.csv"


def array(*splits: str) -> ImageSet:
    images = np.stack([noise(number) for number in range(len(splits))])
    return ImageSet(images, [f"n{n}" for n in range(len(splits))], np.arange(len(splits)), splits=np.array(splits))


def test_only_the_images_of_a_split_are_read(tmp_path: Path) -> None:
    path = listed(tmp_path, "train", "test", "train")
    assert isinstance(open_source(path, split="train"), Subset)
    train = read_images(path, image_size=24, split="train")
    assert np.array_equal(train.images, [noise(0), noise(2)])
    assert train.names == ["00.png", "02.png"]
    assert train.labels is not None
    assert train.labels.tolist() == ["0", "2"]
    assert train.splits is not None
    assert train.splits.tolist() == ["train", "train"]


def test_prepared_splits_of_one_source_do_not_clash(tmp_path: Path) -> None:
    path = listed(tmp_path, "train", "test", "train")
    options: dict[str, Any] = {"image_size": 24, "cache": tmp_path / "cache"}
    for _ in range(2):
        train, test, both = (read_images(path, split=split, **options) for split in ("train", "test", ""))
        assert [len(image_set.images) for image_set in (train, test, both)] == [2, 1, 3]
    assert len({image_set.origin.key for image_set in (train, test, both)}) == 3


def test_a_list_that_only_changes_its_splits_is_prepared_anew(tmp_path: Path) -> None:
    options: dict[str, Any] = {"image_size": 24, "cache": tmp_path / "cache", "split": "train"}
    path = listed(tmp_path, "train", "test")
    read_images(path, **options)
    path.write_text(path.read_text().replace("train", "x").replace("test", "train").replace("x", "test"))
    assert np.array_equal(read_images(path, **options).images, [noise(1)])


def test_rows_of_an_array_that_lie_side_by_side_are_not_copied() -> None:
    given = array("train", "train", "test")
    train = read_images(given, split="train")
    assert np.shares_memory(train.images, given.images)
    assert train.names == ["n0", "n1"]
    mixed = read_images(array("train", "test", "train"), split="train")
    assert np.array_equal(mixed.images, [noise(0), noise(2)])
    assert mixed.labels is not None
    assert mixed.labels.tolist() == [0, 2]


def test_a_mapped_file_stays_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.stack([noise(0), noise(1)]))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    source = ArraySource(mapped, splits=np.array(["train", "test"]), place="here")
    test = read_images(source, split="test")
    assert isinstance(test.images, np.memmap)
    assert test.origin.place == "here?split=test"


def test_a_split_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"split must be test or train for .*list\.csv, got 'val'\. Choose one"):
        read_images(listed(tmp_path, "train", "test"), split="val")
    with pytest.raises(UserError, match="split must be left out for the array: it has no splits, got 'train'"):
        read_images(noise()[np.newaxis], split="train")


def test_a_split_of_a_data_set_of_splits_is_taken_by_its_key() -> None:
    class Splits(dict[str, Any]):
        column_names = ("image",)

    class Columns(list[Any]):
        column_names = ("image",)
        features: dict[str, Any] = {"image": None}  # noqa: RUF012

    splits = Splits(train=Columns([{"image": noise(0)}]), test=Columns([{"image": noise(1)}]))
    assert np.array_equal(read_images(splits, image_size=24, split="test").images, [noise(1)])
    with pytest.raises(UserError, match=r"several splits: train, test\. Choose one"):
        read_images(splits)
    with pytest.raises(UserError, match="No split 'tset'. Did you mean 'test'"):
        read_images(splits, split="tset")
