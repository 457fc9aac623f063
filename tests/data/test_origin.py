from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.data.read import read_images
from tests.data.pictures import encoded, noise, photos, put


@pytest.mark.parametrize("grey", [False, True])
def test_prepared_images_and_the_same_array_have_the_same_checksum(tmp_path: Path, grey: bool) -> None:
    images = np.stack([noise(number)[..., :1].repeat(3, axis=2) if grey else noise(number) for number in range(3)])
    for number, image in enumerate(images):
        put(tmp_path / "photos" / f"{number}.png", encoded(image))
    prepared = read_images(tmp_path / "photos", image_size=24, cache=tmp_path / "cache")
    again = read_images(tmp_path / "photos", image_size=24, cache=tmp_path / "cache")
    in_memory = read_images(images, channels=1 if grey else None)
    assert prepared.origin.checksum == in_memory.origin.checksum
    assert again.origin == prepared.origin
    assert (prepared.origin.kind, prepared.origin.place) == ("folder", str((tmp_path / "photos").resolve()))
    assert (tmp_path / "cache" / "images" / prepared.origin.key / "manifest.json").is_file()
    assert (in_memory.origin.kind, in_memory.origin.place, in_memory.origin.key) == ("array", "", "")


def test_the_pixels_of_prepared_images_are_not_read_for_their_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_set = read_images(photos(tmp_path, 2), image_size=24)
    monkeypatch.setattr("dccm.data.images.checksum", None)
    assert len(image_set.origin.checksum) == 8


def test_the_checksum_of_an_array_is_computed_once_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(images: Any) -> str:
        calls.append(len(images))
        return "0000abcd"

    monkeypatch.setattr("dccm.data.images.checksum", counted)
    image_set = read_images(noise()[np.newaxis])
    assert calls == []
    assert [image_set.origin.checksum for _ in range(2)] == ["0000abcd"] * 2
    assert calls == [1]


def test_an_image_set_keeps_where_it_comes_from_and_what_was_skipped(tmp_path: Path) -> None:
    photos(tmp_path, 2)
    put(tmp_path / "broken.png", b"nothing")
    first = read_images(tmp_path, image_size=24)
    assert read_images(first, image_size=24, channels=3) is first
    small = read_images(first, image_size=16)
    assert small.skipped == first.skipped != []
    assert (small.origin.kind, small.origin.place) == ("folder", first.origin.place)
    assert small.origin.checksum != first.origin.checksum
    assert small.origin.key == ""
