"""Photographs are clustered by features of a pretrained encoder, unless somebody says otherwise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dccm.commands.cluster import cluster
from dccm.data.images import ImageSet
from dccm.data.look import are_photographs
from dccm.data.read import open_source
from dccm.networks import encoders
from tests.commands.test_vectors import coloured

installed = pytest.mark.skipif(not encoders.is_installed(), reason="the extra 'pretrained' is not installed")


def folder_of(path: Path, side: int = 48, mode: str = "RGB", count: int = 12) -> Path:
    """Noise in three brightnesses."""
    path.mkdir()
    draw = np.random.default_rng(0)
    for number in range(count):
        pixels = draw.integers(80 * (number % 3), 80 * (number % 3) + 60, (side, side + 9, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(path / f"{number:02d}.png")
    return path


class Listener:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize(
    ("side", "mode", "expected"), [(48, "RGB", True), (300, "RGBA", True), (47, "RGB", False), (64, "L", False)]
)
def test_photographs_are_in_colour_and_have_48_pixels(side: int, mode: str, expected: bool, tmp_path: Path) -> None:
    assert are_photographs(open_source(folder_of(tmp_path / "images", side, mode, 3))) is expected


def test_arrays_and_wanted_sides_count_too() -> None:
    large = np.zeros((3, 64, 64, 3), np.uint8)
    assert are_photographs(open_source(large))
    assert are_photographs(ImageSet(large, ["a", "b", "c"]))
    assert not are_photographs(open_source(large), side=32)
    assert not are_photographs(coloured(3))


@installed
def test_a_folder_of_photographs_is_clustered_by_pretrained_features(tmp_path: Path) -> None:
    listener = Listener()
    given: dict[str, Any] = {"output": tmp_path / "run", "cache": tmp_path / "cache", "device": "cpu"}
    made = cluster(folder_of(tmp_path / "images"), 3, "kmeans", watcher=listener, **given)
    assert made.model.pretrained is not None
    assert made.model.pretrained.name == "efficientnet-lite0"
    assert listener.said[0].startswith("These look like photographs: features of efficientnet-lite0 are clustered")
    assert "The other choice is the encoder 'scratch'" in listener.said[0]
    again = cluster(folder_of(tmp_path / "more"), 3, "kmeans", resume=True, **given)
    assert again.result.settings["encoder"] == "efficientnet-lite0"


@pytest.mark.parametrize(
    "named",
    [
        {"encoder": "scratch"},
        {"preset": "paper"},
        {"settings": {"batch_size": 50}},
        {"dataset": "stl10"},
        {"method": "nmf"},
    ],
    ids=lambda named: next(iter(named)),
)
def test_whoever_names_something_is_not_overruled(named: dict[str, Any], tmp_path: Path) -> None:
    listener = Listener()
    given = {"method": "kmeans"} | named
    output, cache = tmp_path / "run", tmp_path / "cache"
    images = folder_of(tmp_path / "images")
    made = cluster(images, 3, image_size=48, output=output, cache=cache, watcher=listener, **given)
    assert made.model.pretrained is None
    assert not any("photographs" in text for text in listener.said)


def test_without_the_extra_images_are_learnt_from_alone_and_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dccm.runs.automatic.is_installed", lambda _: False)
    listener = Listener()
    given: dict[str, Any] = {"output": tmp_path / "run", "cache": tmp_path / "cache"}
    made = cluster(folder_of(tmp_path / "images"), 3, "kmeans", encoder="auto", watcher=listener, **given)
    assert made.model.pretrained is None
    assert listener.said[0].endswith("Get it with: pip install 'dccm[pretrained]'")
