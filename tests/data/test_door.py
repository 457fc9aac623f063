"""The kinds of things that `read_images` takes besides paths and arrays, and what it asks of them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dccm.data.datasets import data_set_name
from dccm.data.read import read_images
from dccm.errors import UserError
from tests.data.pictures import noise, photos


def test_a_data_set_is_read_by_its_name_unless_something_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    image_set = read_images("digits")
    assert image_set.images.shape == (1797, 8, 8, 1)
    assert image_set.origin.place == "scikit-learn#digits"
    assert (data_set_name("digits"), data_set_name(Path("digits")), data_set_name("dig")) == ("digits", "", "")
    photos(tmp_path / "digits", 2)
    assert data_set_name("digits") == ""
    assert len(read_images("digits").images) == 2


def test_a_variant_is_of_data_sets_by_name_only(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"variant is for data sets by name, and .*here is none, got 'fine'\. Leave it"):
        read_images(str(tmp_path / "here"), variant="fine")
    with pytest.raises(UserError, match=r"and what was given \(ndarray\) is none, got 'fine'"):
        read_images(noise()[np.newaxis], variant="fine")
    with pytest.raises(UserError, match="variant of digits must be left out, got 'fine'"):
        read_images("digits", variant="fine")


def test_images_of_pillow_come_in_lists_and_in_anything_that_can_be_gone_through() -> None:
    images = [Image.fromarray(noise(number)) for number in range(2)]
    expected = [noise(0), noise(1)]
    for given in (images, tuple(images), iter(images), (image for image in images)):
        assert np.array_equal(read_images(given, image_size=24).images, expected)


class Column:
    """As much of a column of pandas as is used: its rows go by names of their own, not by their place."""

    def __init__(self, values: list[str]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: object) -> str:
        raise KeyError(name)

    def to_numpy(self) -> Any:
        return np.array(self.values, dtype=object)


@pytest.mark.parametrize("kind", [np.array, Column], ids=["array", "column"])
def test_paths_come_in_arrays_and_in_columns_of_tables_too(tmp_path: Path, kind: Any) -> None:
    photos(tmp_path, 2)
    paths = [str(tmp_path / f"{number:02}.png") for number in range(2)]
    image_set = read_images(kind(paths), image_size=24)
    assert image_set.names == paths
    assert np.array_equal(image_set.images, [noise(0), noise(1)])


def test_images_are_brought_to_a_height_and_a_width(tmp_path: Path) -> None:
    photos(tmp_path, 2)
    assert read_images(tmp_path, image_size=(24, 40)).images.shape == (2, 24, 40, 3)


def test_reading_images_needs_no_torch(tmp_path: Path) -> None:
    photos(tmp_path, 1)
    # Preparing tells the allocator of the machine to keep memory; what the machine offers is torch's to say.
    program = (
        "import sys, dccm.data.datasets, dccm.data.read as read\n"
        f"source = read.open_source({str(tmp_path)!r})\n"
        "assert 'torch' not in sys.modules and 'sklearn' not in sys.modules, 'heavy'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
