import os
from pathlib import Path

import numpy as np
import pytest

from dccm.data.sources.arrays import ArraySource
from dccm.errors import UserError

IMAGES = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)


def test_images_are_given_as_they_are_and_numbered() -> None:
    source = ArraySource(IMAGES)
    assert source.images is IMAGES
    assert np.array_equal(source.read(1), IMAGES[1])
    assert (list(source.names), len(source)) == (["0", "1"], 2)
    assert (source.labels, source.splits, source.place) == (None, None, None)


def test_the_fingerprint_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(b"abc")
    before = ArraySource(IMAGES, place=str(path)).fingerprint()
    assert ArraySource(IMAGES, files=[path]).fingerprint() == before
    os.utime(path, (1, 1))
    assert ArraySource(IMAGES, place=str(path)).fingerprint() != before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": IMAGES[0]}, r"images must be uint8 of the shape \(N, H, W, C\), got uint8 of \(4, 4, 3\)"),
        ({"images": IMAGES.astype(float)}, "images must be uint8 .* got float64"),
        ({"names": ["a"]}, "names must be one for each of the 2 images, got 1"),
        ({"labels": np.zeros(3)}, "labels must be one for each of the 2 images, got 3"),
        ({"splits": np.array(["train"])}, "splits must be one for each of the 2 images, got 1"),
    ],
)
def test_what_does_not_fit_the_images_is_refused(change: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        ArraySource(**({"images": IMAGES} | change))
