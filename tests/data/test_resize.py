from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dccm.arrays import Fit
from dccm.data.decode import Preparation, decode
from dccm.data.read import read_images
from dccm.data.resize import as_size, resized
from dccm.errors import UserError
from tests.data.pictures import Pixels, encoded, put

FITS: tuple[Fit, ...] = ("crop", "pad", "stretch")
LAID_DOWN = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How a camera that was held in this way stores an upright scene."""


def picture(height: int, width: int, channels: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(12, 12), (48, 48), (24, 24), (12, 40), (24, 16)], ids=str)
def test_a_file_and_its_array_become_the_same_pixels(
    tmp_path: Path, size: tuple[int, int], channels: int, fit: Fit
) -> None:
    images = np.stack([picture(20, 30, channels, seed) for seed in range(3)])
    for number, image in enumerate(images):
        put(tmp_path / f"{number}.png", encoded(image if channels == 3 else image[..., 0]))
    from_files = read_images(tmp_path, image_size=size, fit=fit)
    from_array = read_images(images, image_size=size, fit=fit)
    assert from_files.images.shape == (3, *size, channels)
    assert np.array_equal(from_files.images, from_array.images)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("channels", "wanted"), [(3, 1), (1, 3)])
def test_a_file_and_its_array_become_the_same_grey_and_the_same_colour(
    tmp_path: Path, channels: int, wanted: int, fit: Fit
) -> None:
    image = picture(20, 30, channels)
    put(tmp_path / "0.png", encoded(image if channels == 3 else image[..., 0]))
    options: dict[str, Any] = {"image_size": 12, "fit": fit, "channels": wanted}
    assert np.array_equal(read_images(tmp_path, **options).images, read_images(image[np.newaxis], **options).images)


def test_stretching_keeps_all_of_the_image_and_none_of_its_proportions() -> None:
    wide = np.zeros((8, 32, 3), dtype=np.uint8)
    wide[:, 16:] = 200
    small = decode(wide, Preparation((8, 8), "stretch"))
    assert (small[:, :3] < 20).all()
    assert (small[:, 5:] > 180).all()
    assert np.array_equal(resized(wide[np.newaxis], (8, 8), "stretch")[0], small)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_photo_fits_into_a_size_that_is_not_square(orientation: int, fit: Fit) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = np.full((40, 24, 3), 60, dtype=np.uint8)
    upright[:8] = 200
    stored = Image.fromarray(upright)
    if orientation in LAID_DOWN:
        stored = stored.transpose(LAID_DOWN[orientation])
    content = encoded(stored, "PNG", exif=exif)
    found = decode(content, Preparation((20, 12), fit))
    assert found.shape == (20, 12, 3)
    assert np.abs(found.astype(int) - decode(upright, Preparation((20, 12), fit))).max() <= 1


def test_a_size_is_a_side_or_height_and_width() -> None:
    assert as_size(np.int64(32)) == (32, 32)  # type: ignore[arg-type]
    assert as_size((24, 40)) == (24, 40)
    with pytest.raises(UserError, match=r"image_size must be at least 8 pixels, got 7\. Take 32, 64 or 96"):
        as_size((24, 7))
