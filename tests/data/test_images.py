from zlib import crc32

import numpy as np
import pytest
from PIL import Image

from dccm.data.images import ImageSet, Origin, as_bytes, checksum, with_channels
from dccm.data.resize import resized
from dccm.errors import UserError


def test_floats_from_0_to_1_become_bytes() -> None:
    assert as_bytes(np.full((1, 8, 8), 0.5)).tolist()[0][0][0] == [128]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((2, 8, 8), 1.5), r"floats must lie in \[0, 1\], got values from 1.5 to 1.5"),
        (np.full((2, 8, 8), -0.5), r"floats must lie in \[0, 1\]"),
        (np.full((2, 8, 8), np.nan), "must not hold NaN or infinite values"),
        (np.full((2, 8, 8), np.inf), "must not hold NaN or infinite values"),
        (np.zeros((2, 8)), r"must have the shape \(N, H, W\) or \(N, H, W, C\), got \(2, 8\)"),
        (np.zeros((0, 8, 8)), "must hold at least one image"),
        (np.zeros((2, 3, 32, 32), dtype=np.uint8), "must have their channels last"),
        (np.zeros((2, 8, 8), dtype=np.int64), "must be uint8 or floats in .* got int64"),
    ],
)
def test_arrays_that_are_no_images_are_refused(array: np.ndarray, words: str) -> None:
    with pytest.raises(UserError, match=words):
        as_bytes(array)


def test_channels_are_repeated_or_weighed() -> None:
    grey = np.full((1, 8, 8, 1), 100, dtype=np.uint8)
    assert with_channels(grey, 3).shape == (1, 8, 8, 3)
    assert with_channels(with_channels(grey, 3), 1).tolist() == grey.tolist()
    with pytest.raises(UserError, match="images must have 3 channels for this model, got 4"):
        with_channels(np.zeros((1, 8, 8, 4), dtype=np.uint8), 3)


def test_any_number_of_channels_is_resized() -> None:
    images = np.full((2, 10, 14, 5), 7, dtype=np.uint8)
    assert resized(images, (12, 12)).shape == (2, 12, 12, 5)
    assert (resized(images, (12, 12)) == 7).all()


def test_arrays_are_cropped_or_padded_as_files_are() -> None:
    wide = np.full((1, 8, 16, 3), 9, dtype=np.uint8)
    wide[:, :, :4] = 200
    assert (resized(wide, (8, 8)) == 9).all()
    padded = resized(wide, (8, 8), "pad")
    assert (padded[:, :2] == 0).all()
    assert (padded[0, 4, 0] > 100).all()


def test_colour_becomes_the_grey_that_pillow_makes() -> None:
    colour = np.random.default_rng(0).integers(0, 256, (1, 40, 40, 3), dtype=np.uint8)
    assert np.array_equal(with_channels(colour, 1)[0, ..., 0], np.asarray(Image.fromarray(colour[0]).convert("L")))


def test_an_image_set_made_by_hand_has_an_origin() -> None:
    images = np.arange(2 * 8 * 8, dtype=np.uint8).reshape(2, 8, 8, 1)
    made = ImageSet(images, ["a", "b"])
    assert made.origin == Origin("array", "", "", f"{crc32(images.tobytes()):08x}")


def test_the_checksum_is_that_of_all_pixels_however_many_images_there_are() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2500, 2, 2, 1), dtype=np.uint8)
    assert checksum(images) == f"{crc32(images.tobytes()):08x}"
    assert checksum(images[:, ::-1]) != checksum(images)
