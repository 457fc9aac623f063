import io

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from dccm.data.images import Duplicate
from dccm.data.near_duplicates import near_duplicates


@pytest.fixture(scope="module")
def parts() -> np.ndarray:
    """Different parts of one photograph, 64 x 64."""
    photograph = load_sample_image("china.jpg")
    return np.stack([photograph[y : y + 64, x : x + 64] for y in range(0, 320, 80) for x in range(0, 560, 80)])


def compressed(image: np.ndarray) -> np.ndarray:
    content = io.BytesIO()
    Image.fromarray(image).save(content, "jpeg", quality=30)
    return np.asarray(Image.open(content))


def names(images: np.ndarray) -> list[str]:
    return [str(number) for number in range(len(images))]


def test_another_quality_brightness_and_size_are_found_and_other_parts_are_not(parts: np.ndarray) -> None:
    assert near_duplicates(parts, names(parts)) == []
    small = np.asarray(Image.fromarray(parts[17]).resize((40, 40)).resize((64, 64)))
    brighter = np.clip(parts[23].astype(int) + 8, 0, 255).astype(np.uint8)
    images = np.concatenate([parts, [compressed(parts[15]), small, brighter]])
    found = near_duplicates(images, names(images))
    assert found == [Duplicate("28", "15"), Duplicate("29", "17"), Duplicate("30", "23")]


def test_exact_duplicates_even_images_and_tiny_ones_are_left_out(parts: np.ndarray) -> None:
    images = np.concatenate([parts, parts[15:16], np.zeros((3, 64, 64, 3), np.uint8)])
    assert near_duplicates(images, names(images), [Duplicate("28", "15")]) == []
    assert near_duplicates(images[:, ::8, ::8], names(images)) == []
    assert near_duplicates(images[-2:], names(images[-2:])) == []


def test_very_different_brightness_is_another_image(parts: np.ndarray) -> None:
    darker = (parts[15].astype(np.float32) * 0.5).astype(np.uint8)
    images = np.stack([parts[15], darker])
    assert near_duplicates(images, names(images)) == []


def test_grey_images_and_many_channels_will_do(parts: np.ndarray) -> None:
    for images in (parts[..., :1], np.concatenate([parts, parts], axis=3)):
        twice = np.concatenate([images, images[20:22] // 8 * 8])
        assert [pair.same_as for pair in near_duplicates(twice, names(twice))] == ["20", "21"]
