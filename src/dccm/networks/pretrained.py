"""Pretrained encoders, opened by the names that `encoders.py` lists."""

from collections.abc import Callable
from pathlib import Path

import torch

from dccm.errors import require
from dccm.machine import choose_device
from dccm.networks import efficientnet_weights as efficientnet
from dccm.networks.efficientnet_onnx import fastest_encoder
from dccm.networks.encoders import LITE0, SCRATCH, divided, require_encoder
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.hubs import hf_encoder, timm_encoder
from dccm.networks.onnx_file import onnx_encoder
from dccm.networks.seeds import drawn_from


def _lite0(name: str, weights: Path, device: torch.device) -> FeatureEncoder:
    return fastest_encoder(name, efficientnet.folded_network(weights), device)


_OPENERS: dict[str, Callable[[str, torch.device, str | Path | None], FeatureEncoder]] = {
    LITE0: lambda _, device, cache: _lite0(LITE0, efficientnet.weights_file(cache), device),
    "file:": lambda path, device, _: _lite0(f"file:{path}", Path(path), device),
    "onnx:": lambda path, _, __: onnx_encoder(Path(path)),
    "timm:": lambda model, device, _: timm_encoder(model, device),
    "hf:": lambda model, device, _: hf_encoder(model, device),
}
"""By what stands behind the colon, a device, and the cache folder."""


def open_encoder(name: str, device: str = "auto", cache: str | Path | None = None) -> FeatureEncoder:
    """The encoder of this name with its weights.

    Args:
        name: As `ENCODERS` has it; behind a colon follows which one.
        device: Where to compute.
        cache: Where converted weights are kept; None: the user's cache folder.
    """
    require_encoder(name)
    require(name != SCRATCH, "encoder 'scratch' has no weights of its own. Choose a pretrained one.")
    kind, rest = divided(name)
    with drawn_from(0):  # Networks are filled with numbers before their weights are read.
        return _OPENERS[kind](rest, choose_device(device), cache)
