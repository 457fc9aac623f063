"""Maps before the trained blocks are kept as vectors are."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from dccm.arrays import Bytes, Floats
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.networks.map_encoder import MapEncoder
from dccm.runs import features as module
from dccm.runs.features import features_of_images, inputs_of
from tests.networks.weights import random_network

IMAGES = bars(10, side=8)
NETWORK = random_network().folded()


class Quick(MapEncoder):
    """Makes maps of the right shape without a network, and may stop."""

    def __init__(self, blocks: int = 1, stop_at: int = 99, scale: float = 1.0) -> None:
        super().__init__("quick", NETWORK, blocks, torch.device("cpu"))
        self.seen, self.stop_at, self.scale, self.at_once = 0, stop_at, scale, 2

    def __call__(self, images: Bytes) -> Floats:
        self.seen += len(images)
        if self.seen > self.stop_at:
            raise KeyboardInterrupt
        first = images.reshape(len(images), -1)[:, 0].astype(np.float32)
        made: Floats = np.ones((len(images), *self.map_shape), np.float32) * (first[:, None, None, None] + 1)
        return made * self.scale


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMMIT", 1)


def test_maps_are_kept_as_they_are_found_again_and_told_apart_by_the_cut(tmp_path: Path) -> None:
    said: list[str] = []
    inputs, pretrained = inputs_of(IMAGES, Quick(), cache=tmp_path, say=said.append)
    assert isinstance(inputs, np.memmap)
    assert (inputs.shape, inputs.dtype) == ((10, 7, 7, 192), np.float16)
    assert np.array_equal(inputs, Quick()(IMAGES.images).astype(np.float16))
    assert pretrained is not None
    assert (pretrained.name, pretrained.finetune) == ("quick", 1)
    again, other = Quick(), Quick(2)
    inputs_of(IMAGES, again, cache=tmp_path, say=said.append)
    assert again.seen == 0
    inputs_of(IMAGES, other, cache=tmp_path)
    assert other.seen == 10
    assert [sentence.split(" in ")[0] for sentence in said] == ["The maps before the trained blocks need 0.2 MB"]


def test_a_stopped_computation_of_maps_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        features_of_images(IMAGES, Quick(stop_at=6), cache=tmp_path)
    again, said = Quick(), list[str]()
    found = features_of_images(IMAGES, again, cache=tmp_path, say=said.append)
    assert again.seen == 4
    assert np.array_equal(found, Quick()(IMAGES.images).astype(np.float16))
    assert "need 75.3 kB" in said[0]
    [folder] = (tmp_path / "features").iterdir()
    assert json.loads((folder / "manifest.json").read_text())["features"] == [7, 7, 192]


def test_a_disk_without_room_is_named_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    def usage(_: Any) -> Usage:
        return Usage(150_000)

    monkeypatch.setattr("shutil.disk_usage", usage)
    encoder = Quick()
    with pytest.raises(UserError, match="need 0.2 MB in .*, and 0.1 MB are free. Free some space, .*finetune = 0"):
        features_of_images(IMAGES, encoder, cache=tmp_path)
    assert encoder.seen == 0


def test_values_too_large_for_half_precision_are_refused_and_the_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'quick' makes no numbers of the image"):
        features_of_images(IMAGES, Quick(scale=1e6), cache=tmp_path)
