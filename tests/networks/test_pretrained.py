"""Encoders by name; timm and transformers are stood in for by modules with the few functions that are called."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dccm.errors import UserError
from dccm.networks.encoders import ENCODERS, require_encoder
from dccm.networks.pretrained import open_encoder
from tests.networks.weights import write_weights

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
WHITE = np.full((1, 16, 16, 3), 255, np.uint8)


class Flat(nn.Module):
    """Mean colour of scaled images, the way each library hands it out."""

    def __init__(self, field: str = "") -> None:
        super().__init__()
        self.field = field
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, images: Tensor | None = None, pixel_values: Tensor | None = None) -> Any:
        if pixel_values is None:
            assert images is not None
            return images.mean(dim=(2, 3))
        means = pixel_values.mean(dim=(2, 3))
        if self.field == "pooler_output":
            return SimpleNamespace(pooler_output=means[..., None, None], last_hidden_state=None)
        return SimpleNamespace(pooler_output=None, last_hidden_state=means[:, None].repeat(1, 5, 1))


def stand_in_for_timm(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []

    def create_model(name: str, **options: Any) -> nn.Module:
        calls.append((name, options))
        if name != "small":
            raise RuntimeError(f"Unknown model ({name})")
        return Flat()

    wanted = {
        "input_size": (3, 16, 16),
        "mean": (0.5, 0.5, 0.5),
        "std": (0.25, 0.25, 0.25),
        "interpolation": "bilinear",
    }
    data = SimpleNamespace(resolve_model_data_config=lambda _: wanted)
    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(create_model=create_model, data=data))
    return calls


def stand_in_for_transformers(
    monkeypatch: pytest.MonkeyPatch, processor: dict[str, Any], model: nn.Module
) -> dict[str, Any]:
    options: dict[str, Any] = {}

    def from_pretrained(name: str, **given: Any) -> nn.Module:
        options.update(given)
        return model

    read = SimpleNamespace(from_pretrained=lambda _: SimpleNamespace(to_dict=lambda: processor))
    stand_in = SimpleNamespace(AutoImageProcessor=read, AutoModel=SimpleNamespace(from_pretrained=from_pretrained))
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    return options


def test_a_model_of_timm_has_its_own_preprocessing_and_no_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in_for_timm(monkeypatch)
    encoder = open_encoder("timm:small", "cpu")
    assert calls == [("small", {"pretrained": True, "num_classes": 0})]
    assert (encoder.name, encoder.feature_size, encoder.preprocessing.side) == ("timm:small", 3, 16)
    assert encoder.preprocessing.interpolation == "bilinear"
    assert encoder.identity.endswith(" bilinear")
    assert np.allclose(encoder(WHITE), (1 - 0.5) / 0.25)
    with pytest.raises(UserError, match=r"'timm:smal' cannot be opened \(Unknown model \(smal\)\). Check its name"):
        open_encoder("timm:smal", "cpu")


PROCESSORS = [
    {"size": {"height": 16, "width": 16}},
    {"size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 16}, "do_center_crop": True},
    {"size": {"shortest_edge": 16}, "crop_size": None, "do_center_crop": False},
    {"size": 16},
]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("field", ["pooler_output", "last_hidden_state"])
def test_a_model_of_hugging_face_pools_or_has_a_class_token(
    processor: dict[str, Any], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaling = {"image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    options = stand_in_for_transformers(monkeypatch, processor | scaling, Flat(field))
    encoder = open_encoder("hf:some/model", "cpu")
    assert options == {"use_safetensors": True, "trust_remote_code": False}
    assert encoder.preprocessing.side == 16
    assert np.allclose(encoder(WHITE), 2)


@pytest.mark.parametrize(("number", "name"), [(None, "bicubic"), (2, "bilinear"), (3, "bicubic"), (1, "lanczos")])
def test_a_model_of_hugging_face_names_its_interpolation_by_pillows_number(
    number: int | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = {"size": 16, "do_normalize": False, "resample": number}
    stand_in_for_transformers(monkeypatch, processor, Flat("pooler_output"))
    encoder = open_encoder("hf:some/model", "cpu")
    assert encoder.preprocessing.interpolation == name
    # What was kept before interpolations were told apart is found again.
    assert encoder.identity.endswith("1 1 1" if name == "bicubic" else f"1 1 1 {name}")


def test_an_interpolation_that_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = {"size": 16, "do_normalize": False, "resample": 9}
    stand_in_for_transformers(monkeypatch, processor, Flat("pooler_output"))
    with pytest.raises(UserError, match="interpolation in the settings of hf:x must be one of bicubic, .* got 9. Corr"):
        open_encoder("hf:x", "cpu")


def test_of_models_with_a_text_part_the_image_tower_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    both = nn.Module()
    both.vision_model = Flat("pooler_output")
    stand_in_for_transformers(monkeypatch, {"size": 16, "do_normalize": False}, both)
    assert np.allclose(open_encoder("hf:clip", "cpu")(WHITE), 1)


@pytest.mark.parametrize(("name", "module"), [("timm:small", "timm"), ("hf:small", "transformers")])
def test_a_missing_extra_is_named(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    extra = name.partition(":")[0]
    with pytest.raises(UserError, match=rf"'{name}' needs {module}. Get it with: pip install 'dccm\[{extra}\]'"):
        open_encoder(name, "cpu")


def test_a_file_of_weights_is_an_encoder(tmp_path: Path) -> None:
    path = write_weights(tmp_path / "own.safetensors")
    encoder = open_encoder(f"file:{path}", "cpu")
    assert (encoder.name, encoder.feature_size, encoder(IMAGES).shape) == (f"file:{path}", 1280, (2, 1280))
    with pytest.raises(UserError, match="There is no file .*other.safetensors"):
        open_encoder(f"file:{tmp_path / 'other.safetensors'}", "cpu")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("efficientnet-lite", "No encoder 'efficientnet-lite'. Did you mean 'efficientnet-lite0'\\? See \"dccm enc"),
        ("tim:small", "No encoder 'tim:'. Did you mean 'timm:'"),
        ("onnx:", "encoder must say which one behind 'onnx:', got 'onnx:'"),
        ("scratch", "encoder 'scratch' has no weights of its own"),
    ],
)
def test_names_of_no_encoder_are_refused(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        open_encoder(name)


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_kind_has_an_example_that_is_a_name(kind: str) -> None:
    require_encoder(ENCODERS[kind].example)
    assert ENCODERS[kind].example.startswith(kind)
