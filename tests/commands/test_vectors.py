"""Clusters of vectors by a pretrained encoder, from images to new images."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.commands.cluster import cluster
from dccm.commands.lists import list_methods
from dccm.commands.predict import predict
from dccm.data.images import ImageSet
from dccm.errors import UserError
from dccm.methods import METHODS
from dccm.methods.base import GradientMethod
from dccm.runs.model import Model
from tests.networks.weights import write_weights
from tests.test_cli import dccm

VECTOR_METHODS = ["kmeans", "spectral", "agglomerative", "dccm", "dec", "dac", "scan", "temi", "turtle"]
QUICK: dict[str, dict[str, Any]] = {
    # Each colour has ten images: with the usual 20 neighbours all would be linked to other colours.
    "spectral": {"neighbours": 8},
    "dccm": {"mini_batch": 10},
    "dec": {"mini_batch": 10},
    "dac": {"mini_batch": 10},
    "scan": {"start": "kmeans", "epochs": 20},
    "temi": {"start": "kmeans", "epochs": 20},
    # In as many dimensions as there are images, ten steps would be enough to learn any labelling.
    "turtle": {"start": "kmeans", "epochs": 1, "inner_steps": 1},
}


def coloured(count: int, seed: int = 0) -> ImageSet:
    """Three colours, each in many shades, which any network tells apart."""
    shades = np.random.default_rng(seed).integers(0, 8, (count, 1, 1, 3), dtype=np.uint8)
    labels = np.arange(count) % 3
    images = shades.repeat(16, axis=1).repeat(16, axis=2)
    images[np.arange(count), :, :, labels] += 240
    return ImageSet(images, [f"{number}.png" for number in range(count)], labels)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file:{write_weights(tmp_path_factory.mktemp('weights') / 'own.safetensors')}"


def clustered(encoder: str, output: Path, method: str = "kmeans", **given: Any) -> Any:
    return cluster(coloured(30), 3, method, encoder=encoder, output=output, device="cpu", **given)


@pytest.mark.parametrize("method", VECTOR_METHODS)
def test_vectors_are_clustered_and_new_images_join_them(method: str, encoder: str, tmp_path: Path) -> None:
    settings = QUICK.get(method, {})
    made = clustered(encoder, tmp_path / "run", method, cache=tmp_path / "cache", settings=settings)
    assert made.result.scores is not None
    assert made.result.scores["acc"] == 1
    assert made.model.shape == (1280, 1, 1)
    size = 64 if issubclass(METHODS[method], GradientMethod) else 1280
    assert made.directory.read_embedding().shape == (30, size)
    assert made.directory.read_thumbnails(30).images.shape[1:] == (16, 16, 3)
    known = predict(tmp_path / "run", coloured(30), device="cpu", cache=tmp_path / "cache").assignments.clusters
    assert np.array_equal(known, made.directory.read_assignments().clusters)
    new = predict(tmp_path / "run", coloured(9, seed=1), device="cpu", cache=tmp_path / "cache").assignments.clusters
    assert np.array_equal(new, known[:9])


def test_a_second_run_with_another_k_computes_no_features(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clustered(encoder, tmp_path / "one", cache=tmp_path / "cache")
    monkeypatch.setattr("dccm.runs.features._computed", lambda *_: pytest.fail("features were computed again"))
    made = cluster(coloured(30), 5, "agglomerative", encoder=encoder, output=tmp_path / "two", cache=tmp_path / "cache")
    assert made.result.n_clusters == 5


def test_numbers_of_pretrained_features_are_marked_everywhere(encoder: str, tmp_path: Path) -> None:
    said: list[str] = []

    class Watcher:
        def say(self, text: str) -> None:
            said.append(text)

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    made = clustered(encoder, tmp_path / "run", watcher=Watcher())
    note = f"Clusters of features of {encoder}, which was trained on other images and may have seen their labels"
    assert said[-1].startswith(
        "30 images of 16 x 16 x 3 (0 skipped, 0 duplicates) into 3 clusters by kmeans on features"
    )
    assert note in made.result.summary()
    assert note in json.loads(made.directory.result.read_text())["pretrained"]
    assert note in made.directory.read_result().summary()
    assert note in made.directory.report.read_text()
    assert made.result.settings["encoder"] == encoder
    plain = cluster(coloured(30), 3, "kmeans", output=tmp_path / "plain")
    assert plain.result.pretrained is None
    assert "features of" not in plain.directory.report.read_text()


def test_other_weights_under_the_same_name_are_noticed(tmp_path: Path) -> None:
    weights = write_weights(tmp_path / "own.safetensors")
    clustered(f"file:{weights}", tmp_path / "run", cache=tmp_path / "cache")
    write_weights(weights, seed=1)
    with pytest.raises(UserError, match="was trained on features of .* with other weights or another preprocessing"):
        predict(tmp_path / "run", coloured(3), device="cpu", cache=tmp_path / "cache")


@pytest.mark.parametrize("stored", ["text", {"name": "a"}, {"name": "a", "identity": "b", "image_shape": [1]}])
def test_a_damaged_description_of_the_encoder_is_refused(stored: Any, encoder: str, tmp_path: Path) -> None:
    path = clustered(encoder, tmp_path / "run").directory.model / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pretrained": stored}))
    with pytest.raises(UserError, match="is damaged: pretrained is missing or wrong"):
        Model.load(tmp_path / "run", "cpu")


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(VECTOR_METHODS)))
def test_methods_that_learn_from_pictures_refuse_vectors(method: str, tmp_path: Path) -> None:
    reason = METHODS[method].no_vectors
    words = f"encoder must be 'scratch' for the method '{method}', which {reason}, .* Methods that take vectors: dccm"
    with pytest.raises(UserError, match=words):
        cluster("photos", 3, method, encoder="efficientnet-lite0", output=tmp_path / "run")


def test_terms_that_need_pictures_are_refused_on_vectors(encoder: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="perturbed_weight must be 0 on vectors .* Set views = 4, or .* preset 'feat"):
        clustered(encoder, tmp_path / "run", "dccm", preset="paper")
    assert not (tmp_path / "run").exists()


def test_dccm_takes_the_preset_for_vectors_and_learns_on_from_a_checkpoint(encoder: str, tmp_path: Path) -> None:
    few: dict[str, Any] = {"settings": {"mini_batch": 10}, "cache": tmp_path / "cache"}
    whole = clustered(encoder, tmp_path / "whole", "dccm", epochs=3, **few)
    assert whole.result.preset == "features"
    clustered(encoder, tmp_path / "parts", "dccm", epochs=1, **few)
    again = cluster(coloured(30), output=tmp_path / "parts", epochs=3, resume=True, cache=tmp_path / "cache")
    assert again.directory.read_assignments().clusters.tolist() == whole.directory.read_assignments().clusters.tolist()
    assert np.array_equal(again.directory.read_embedding(), whole.directory.read_embedding())


def test_an_unknown_encoder_is_refused_before_images_are_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No encoder 'efficientnet'. Did you mean 'efficientnet-lite0'"):
        cluster("photos", 3, "kmeans", encoder="efficientnet", output=tmp_path / "run")


def test_a_run_on_vectors_is_resumed_with_its_encoder(encoder: str, tmp_path: Path) -> None:
    clustered(encoder, tmp_path / "run", cache=tmp_path / "cache")
    again = cluster(coloured(30), output=tmp_path / "run", resume=True, cache=tmp_path / "cache")
    assert again.model.shape.is_vector
    with pytest.raises(UserError, match="was begun with encoder"):
        cluster(coloured(30), encoder="scratch", output=tmp_path / "run", resume=True, cache=tmp_path / "cache")


def test_the_command_takes_an_encoder(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "images.npz", images=coloured(12).images)
    words = ("cluster", tmp_path / "images.npz", "-k", 3, "-m", "kmeans", "--encoder", encoder, "-o", tmp_path / "run")
    assert dccm(*words, "--quiet", monkeypatch=monkeypatch) == 0
    assert "which was trained on other images" in capsys.readouterr().out


def test_the_list_of_methods_says_what_each_takes() -> None:
    takes = {row["method"]: row["takes"] for row in list_methods()}
    assert (takes["rotnet"], takes["dccm"], takes["scan"]) == ("images", "images, vectors", "vectors")


def test_methods_that_need_vectors_refuse_pictures_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dccm.commands.inputs.read", lambda *_, **__: pytest.fail("images were read"))
    words = "encoder must be a pretrained one for the method 'scan', which clusters vectors, got 'scratch'. For example"
    with pytest.raises(UserError, match=words):
        cluster(coloured(12), 3, "scan", encoder="scratch", output=tmp_path / "run")
