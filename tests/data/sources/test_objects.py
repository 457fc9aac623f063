import gc
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

from dccm.data.decode import Preparation
from dccm.data.images import ImageSet
from dccm.data.prepare import prepare
from dccm.data.read import open_source, read_images
from dccm.data.sources.objects import HuggingFace, Torch
from dccm.errors import UserError
from tests.data.pictures import encoded, noise, photos, png, put, within


class FakeImage:
    """The feature `datasets.Image`: it gives open images, or bytes if it is not to decode."""

    def __init__(self, decode: bool = True) -> None:
        self.decode = decode


class FakeDataset:
    """As much of `datasets.Dataset` as is used; the library is not needed for the tests."""

    def __init__(self, columns: dict[str, list[Any]], feature: Any = None, fingerprint: str | None = None) -> None:
        self._columns = columns
        self.column_names = list(columns)
        self.features = {name: feature or FakeImage() for name in columns}
        self._fingerprint = fingerprint

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            return self._columns[key]
        return {name: self._cell(name, values[key]) for name, values in self._columns.items()}

    def _cell(self, name: str, value: Any) -> Any:
        if isinstance(value, dict) and getattr(self.features[name], "decode", False):
            raise AssertionError("the library would decode the image at full size")
        return value

    def cast_column(self, name: str, feature: FakeImage) -> "FakeDataset":
        cast = FakeDataset(self._columns, fingerprint=self._fingerprint)
        cast.features[name] = feature
        return cast


class Items(Dataset[Any]):
    """A torch data set of whatever is given; an exception is raised when it is asked for."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.items[index], Exception):
            raise self.items[index]
        return self.items[index]


def read(thing: Any) -> ImageSet:
    return read_images(thing, image_size=24)


def test_hugging_face_images_are_taken_as_bytes_with_their_labels() -> None:
    images = [{"bytes": png(number), "path": None} for number in range(3)]
    dataset = FakeDataset({"image": images, "label": [2, 0, 1]})
    source = open_source(dataset)
    assert isinstance(source, HuggingFace)
    assert source.read(1) == png(1)
    image_set = read(dataset)
    assert np.array_equal(image_set.images, [noise(number) for number in range(3)])
    assert image_set.names == ["0", "1", "2"]
    assert image_set.labels is not None
    assert image_set.labels.tolist() == [2, 0, 1]


def test_hugging_face_images_may_be_files_arrays_or_missing(tmp_path: Path) -> None:
    put(tmp_path / "a.png", png(0))
    images = [{"bytes": None, "path": str(tmp_path / "a.png")}, noise(1), Image.fromarray(noise(2)), None]
    images += [{"bytes": None, "path": None}, {"bytes": b"nothing", "path": None}]
    image_set = read(FakeDataset({"img": images}, feature=object()))
    assert np.array_equal(image_set.images, [noise(number) for number in range(3)])
    assert image_set.labels is None
    assert [path for path, _ in image_set.skipped] == ["3", "4", "5"]
    assert all(reason for _, reason in image_set.skipped)


def test_a_hugging_face_data_set_is_found_again_by_its_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"image": [{"bytes": png(40), "path": None}]}
    first = read(FakeDataset(columns, fingerprint="4f1d"))
    monkeypatch.setattr(HuggingFace, "read", None)
    assert np.array_equal(read(FakeDataset(columns, fingerprint="4f1d")).images, first.images)
    with pytest.raises(UserError, match="The Hugging Face data set has 1 image, and none can be read"):
        read(FakeDataset(columns, fingerprint="9e20"))


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (FakeDataset({"image": []}), "The data set is empty. Give one that holds images"),
        (FakeDataset({"text": ["x"], "label": [1]}), "called image or .*, it has text, label. Rename it"),
        (type("Streamed", (), {"column_names": ["image"]})(), "A streamed data set has no length, .*streaming=False"),
        (Items(), "The data set is empty. Give one that holds images"),
        (None, "A data set must have a length and give images by number"),
    ],
)
def test_data_sets_that_cannot_be_used_are_refused(dataset: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        open_source(dataset)


def test_a_tensor_data_set_has_its_channels_first_and_its_labels_behind() -> None:
    pixels = torch.from_numpy(np.stack([noise(number) for number in range(3)])).permute(0, 3, 1, 2)
    image_set = read(TensorDataset(pixels, torch.tensor([5, 7, 6])))
    assert np.array_equal(image_set.images, [noise(number) for number in range(3)])
    assert image_set.labels is not None
    assert image_set.labels.tolist() == [5, 7, 6]
    assert np.array_equal(read(TensorDataset(pixels / 255)).images, image_set.images)
    assert read(TensorDataset(pixels)).labels is None
    assert np.array_equal(read(TensorDataset(pixels[:, 0])).images[..., 0], image_set.images[..., 0])


def test_a_tuple_of_two_pictures_has_no_label() -> None:
    pixels = torch.from_numpy(noise(0)).permute(2, 0, 1)
    assert read(Items((pixels, pixels), (pixels, pixels))).labels is None
    assert read(Items((noise(0), noise(1)))).labels is None


def test_images_of_pillow_are_turned_and_resized() -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    image = Image.fromarray(noise(0))
    image.info["exif"] = exif.tobytes()
    image_set = read(Items((image, 1), (Image.fromarray(noise(1, 48)), 0)))
    assert np.array_equal(image_set.images[0], noise(0)[::-1, ::-1])
    assert image_set.images.shape == (2, 24, 24, 3)


@pytest.mark.parametrize("key", ["image", "img"])
def test_dictionaries_hold_an_image_under_its_usual_name(key: str) -> None:
    image_set = read(Items({"number": 3, key: noise(0)}, {"text": "x"}))
    assert np.array_equal(image_set.images, [noise(0)])
    assert [path for path, _ in image_set.skipped] == ["1"]
    assert "image" in image_set.skipped[0].reason


@pytest.mark.parametrize("first", [OSError("a broken file"), ValueError(), (noise(0), "not a number")])
def test_items_that_cannot_be_read_do_not_stop_the_others(first: Any) -> None:
    image_set = read(Items(OSError("a broken file"), (noise(1), 4), first, (noise(2), 5)))
    assert np.array_equal(image_set.images, [noise(1), noise(2)])
    assert image_set.labels is not None
    assert image_set.labels.tolist() == [4, 5]
    assert [path for path, _ in image_set.skipped] == ["0", "2"]
    assert all(reason for _, reason in image_set.skipped)


def test_a_list_may_hold_paths_arrays_and_bytes(tmp_path: Path) -> None:
    photos(tmp_path, 2)
    given = [str(tmp_path / "00.png"), tmp_path / "01.png", noise(2), png(3), encoded(noise(4), "BMP")]
    image_set = read([*given, tmp_path / "gone.png"])
    assert np.array_equal(image_set.images, [noise(number) for number in range(5)])
    assert image_set.names == [str(tmp_path / "00.png"), str(tmp_path / "01.png"), "2", "3", "4"]
    assert image_set.skipped == [(str(tmp_path / "gone.png"), "No such file or directory")]


def test_one_path_is_a_list_too(tmp_path: Path) -> None:
    photos(tmp_path, 1)
    assert read([tmp_path / "00.png"]).images.shape == (1, 24, 24, 3)


@pytest.mark.skipif(sys.platform == "win32", reason="such files are of POSIX systems")
def test_a_pipe_in_a_list_is_skipped_without_waiting(tmp_path: Path) -> None:
    photos(tmp_path, 1)
    os.mkfifo(tmp_path / "pipe.png")
    image_set = within(
        30, lambda: read_images([tmp_path / "pipe.png", tmp_path / "00.png", Path("/dev/zero"), tmp_path])
    )
    assert image_set.names == [str(tmp_path / "00.png")]
    assert [reason for _, reason in image_set.skipped] == ["not a regular file"] * 3


def test_what_is_nowhere_but_in_memory_leaves_the_cache_with_its_images(tmp_path: Path) -> None:
    image_set = prepare(Torch([noise(0), noise(1)]), Preparation((24, 24)), cache=tmp_path)
    assert np.array_equal(image_set.images, [noise(0), noise(1)])
    assert len(list((tmp_path / "images").iterdir())) == 1
    del image_set
    gc.collect()
    assert list((tmp_path / "images").iterdir()) == []


def test_what_is_nowhere_but_in_memory_leaves_nothing_behind_when_it_fails(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="The list has 1 image, and none can be read; the first, 0: pixels"):
        prepare(Torch([noise().astype(int)]), Preparation((24, 24)), cache=tmp_path)
    assert list((tmp_path / "images").iterdir()) == []
