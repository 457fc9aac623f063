"""Pretrained encoders by name. All of them were trained on other people's images, most with other people's labels."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch

from dccm.errors import choose, require
from dccm.machine import choose_device
from dccm.networks import efficientnet_weights as efficientnet
from dccm.networks.efficientnet_onnx import fastest_encoder
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.hubs import HF_EXTRA, TIMM_EXTRA, hf_encoder, timm_encoder
from dccm.networks.onnx_encoder import EXTRA as ONNX_EXTRA
from dccm.networks.onnx_file import onnx_encoder
from dccm.networks.seeds import drawn_from

SCRATCH = "scratch"
"""No pretrained encoder: methods see the images themselves."""
_Opener = Callable[[str, torch.device, str | Path | None], FeatureEncoder]


class Kind(NamedTuple):
    """A pretrained encoder, or a kind of them whose name goes on behind a colon."""

    opened: _Opener
    """By what stands behind the colon, a device, and the cache folder."""
    example: str
    size: str
    licence: str
    trained_on: str
    installed: Callable[[], bool]
    get: str
    """How to get what is not installed."""


def _package(module: str) -> Callable[[], bool]:
    return lambda: find_spec(module) is not None


def _lite0(name: str, weights: Path, device: torch.device) -> FeatureEncoder:
    return fastest_encoder(name, efficientnet.folded_network(weights), device)


ENCODERS: dict[str, Kind] = {
    efficientnet.NAME: Kind(
        lambda _, device, cache: _lite0(efficientnet.NAME, efficientnet.weights_file(cache), device),
        efficientnet.NAME,
        "3.4 M weights, 1,280 features",
        "Apache-2.0",
        "ImageNet, 1.28 M photographs with labels of 1,000 classes",
        efficientnet.is_installed,
        efficientnet.EXTRA,
    ),
    "file:": Kind(
        lambda path, device, _: _lite0(f"file:{path}", Path(path), device),
        "file:weights.safetensors",
        "as efficientnet-lite0",
        "the file's",
        "whatever its author used",
        lambda: True,
        "",
    ),
    "onnx:": Kind(
        lambda path, _, __: onnx_encoder(Path(path)),
        "onnx:model.onnx",
        "the file's",
        "the file's",
        "whatever its author used",
        _package("onnxruntime"),
        ONNX_EXTRA,
    ),
    "timm:": Kind(
        lambda model, device, _: timm_encoder(model, device),
        "timm:vit_small_patch14_dinov2.lvd142m",
        "the model's",
        "the model's; see its card",
        "the model's; DINOv2: 142 M images without labels",
        _package("timm"),
        TIMM_EXTRA,
    ),
    "hf:": Kind(
        lambda model, device, _: hf_encoder(model, device),
        "hf:facebook/dinov2-small",
        "the model's",
        "the model's; see its card",
        "the model's; CLIP: 400 M images with captions",
        _package("transformers"),
        HF_EXTRA,
    ),
}


def require_encoder(name: str) -> None:
    """Refuse a name that is not one of an encoder."""
    kind, rest = _divided(name)
    choose(kind, [SCRATCH, *ENCODERS], "encoder", "dccm encoders")
    require(not kind.endswith(":") or bool(rest), f"encoder must say which one behind '{kind}', got '{name}'.")


def open_encoder(name: str, device: str = "auto", cache: str | Path | None = None) -> FeatureEncoder:
    """The encoder of this name with its weights.

    Args:
        name: As `ENCODERS` has it; behind a colon follows which one.
        device: Where to compute.
        cache: Where converted weights are kept; None: the user's cache folder.
    """
    require_encoder(name)
    require(name != SCRATCH, "encoder 'scratch' has no weights of its own. Choose a pretrained one.")
    kind, rest = _divided(name)
    with drawn_from(0):  # Networks are filled with numbers before their weights are read.
        return ENCODERS[kind].opened(rest, choose_device(device), cache)


def kind_of(name: str) -> Kind:
    """The kind that a pretrained encoder of this name is of."""
    return ENCODERS[_divided(name)[0]]


def _divided(name: str) -> tuple[str, str]:
    kind, colon, rest = name.partition(":")
    return kind + colon, rest
