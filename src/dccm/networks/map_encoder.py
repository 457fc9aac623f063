"""The frozen front of a pretrained encoder: images in, maps before its last blocks out."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from dccm.arrays import Bytes, Floats
from dccm.errors import require
from dccm.machine import choose_device
from dccm.networks import efficientnet_weights as efficientnet
from dccm.networks.efficientnet import FEATURE_SIZE, PREPROCESSING, EfficientNetLite0
from dccm.networks.encoders import LITE0
from dccm.networks.feature_encoder import at_once_on, identity_of, scaled_pixels, tensors_checksum
from dccm.networks.seeds import drawn_from
from dccm.networks.tail import BLOCKS, Tail, TailHead, map_shape

_REASONS = {
    "scratch": "'scratch' learns all of its network anyway",
    "onnx:": "an ONNX file can be run and not trained",
    "timm:": "where the blocks of a model of timm begin is not known",
    "hf:": "where the blocks of a model of Hugging Face begin is not known",
}


class MapEncoder:
    """What comes before the last blocks of EfficientNet-Lite0, and these blocks as they were pretrained.

    Args:
        name: What the user calls it.
        network: With its weights, batch norm folded.
        blocks: How many blocks are left for training.
        device: Where to compute.
    """

    def __init__(self, name: str, network: EfficientNetLite0, blocks: int, device: torch.device) -> None:
        self.name, self.blocks, self.device = name, blocks, device
        self.preprocessing, self.feature_size, self.at_once = PREPROCESSING, FEATURE_SIZE, at_once_on(device)
        self.identity = identity_of(name, tensors_checksum(network.state_dict()), PREPROCESSING)
        channels, height, width = map_shape(blocks)
        self.map_shape = (height, width, channels)
        trunk = nn.Sequential(network.stem, *list(network.blocks)[: BLOCKS - blocks])
        self.trunk = trunk.to(device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
        self.tail = Tail(network, blocks)

    @torch.inference_mode()
    def __call__(self, images: Bytes) -> Floats:
        """Maps of images (B, H, W, C) of any size, grey or colour: (B, h, w, c)."""
        maps: Tensor = self.trunk(scaled_pixels(images, self.preprocessing, self.device))
        return np.ascontiguousarray(maps.float().permute(0, 2, 3, 1).cpu().numpy())

    def begin(self, method: nn.Module) -> None:
        """Let all trained blocks of a method begin as they were pretrained."""
        for module in method.modules():
            if isinstance(module, TailHead):
                module.tail.load_state_dict(self.tail.state_dict())


def open_map_encoder(name: str, blocks: int, device: str = "auto", cache: str | Path | None = None) -> MapEncoder:
    """The encoder of this name, cut before its last blocks.

    Args:
        name: One whose blocks are known.
        blocks: How many are left for training.
        device: Where to compute.
        cache: Where converted weights are kept; None: the user's cache folder.
    """
    require_finetune(name, blocks)
    kind, _, path = name.partition(":")
    file = Path(path) if kind == "file" else efficientnet.weights_file(cache)
    with drawn_from(0):
        return MapEncoder(name, efficientnet.folded_network(file), blocks, choose_device(device))


def require_finetune(name: str, blocks: int) -> None:
    """Refuse to train blocks that an encoder does not have."""
    kind, colon, _ = name.partition(":")
    reason = _REASONS.get(kind + colon, "")
    require(
        not blocks or not reason,
        f"finetune must be 0 with the encoder '{name}', got {blocks}: {reason}. Set finetune = 0, or take the encoder "
        f"'{LITE0}' or one of its weights as file:.",
    )
    require(
        blocks <= BLOCKS,
        f"finetune must lie in [0, {BLOCKS}], as {LITE0} has {BLOCKS} blocks, got {blocks}. "
        "Set finetune = 1 for the last one.",
    )
