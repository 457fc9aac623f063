"""Weights of EfficientNet-Lite0 that nobody trained, under the names of the published ones."""

import re
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from dccm.networks.efficientnet import EfficientNetLite0

INSIDE = {
    "expand": ("_expand_conv", "_bn0"),
    "depthwise": ("_depthwise_conv", "_bn1"),
    "project": ("_project_conv", "_bn2"),
}
OUTSIDE = {"stem": ("_conv_stem", "_bn0"), "head": ("_conv_head", "_bn1")}


def random_network(seed: int = 0) -> EfficientNetLite0:
    """With statistics of batch norm that are not those of a fresh one, and let through what images differ in."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = EfficientNetLite0()
        for name, buffer in network.named_buffers():
            if name.endswith("running_mean"):
                buffer.uniform_(-0.1, 0.1)
            if name.endswith("running_var"):
                buffer.uniform_(0.05, 0.15)
    return network.eval()


def published(network: EfficientNetLite0) -> dict[str, Tensor]:
    """The tensors of a network as the package names them, with the classifier that it has and we do not."""
    renamed = {_published_name(name): tensor for name, tensor in network.state_dict().items()}
    return renamed | {"_fc.weight": torch.zeros(1000, 1280), "_fc.bias": torch.zeros(1000)}


def _published_name(name: str) -> str:
    block = re.fullmatch(r"(?:blocks\.(\d+)\.)?(\w+)\.(conv|norm)\.(\w+)", name)
    assert block, name
    number, part, kind, tensor = block.groups()
    names = OUTSIDE[part] if number is None else INSIDE[part]
    return (f"_blocks.{number}." if number else "") + f"{names[kind == 'norm']}.{tensor}"


def write_weights(path: Path, seed: int = 0) -> Path:
    save_file(published(random_network(seed)), path)
    return path
