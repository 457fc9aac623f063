"""The contract of a pretrained encoder: images in, one vector each out; what it does to pixels first is its own."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np
import torch
from torch import Tensor, nn

from dccm.arrays import Bytes, Floats
from dccm.data.images import with_channels
from dccm.data.resize import Interpolation, resized
from dccm.errors import require

Colour = tuple[float, float, float]
"""Red, green, blue."""


class Preprocessing(NamedTuple):
    """What an encoder wants images to be: square, of one side, their pixels in [0, 1] scaled by mean and deviation."""

    side: int
    mean: Colour
    std: Colour
    interpolation: Interpolation = "bicubic"

    def colour_squares(self, images: Bytes) -> Bytes:
        """Images (B, H, W, C) in colour and of the encoder's side, (B, side, side, 3)."""
        return resized(with_channels(images, 3), (self.side, self.side), interpolation=self.interpolation)


class FeatureEncoder(Protocol):
    """A frozen network that turns images into vectors."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def identity(self) -> str:
        """Name, checksum of the weights and preprocessing: features of equal identity may stand beside each other."""

    @property
    def feature_size(self) -> int:
        """Length of a vector, D."""

    @property
    def preprocessing(self) -> Preprocessing:
        """What is done to images first."""

    @property
    def at_once(self) -> int:
        """Images that it is best given at a time."""

    def __call__(self, images: Bytes) -> Floats:
        """Vectors of images (B, H, W, C) of any size, grey or colour: (B, D)."""


class TorchEncoder:
    """An encoder that is a torch module.

    Args:
        name: What the user calls it.
        network: Scaled images (B, 3, side, side) -> (B, D).
        preprocessing: What is done to images first.
        device: Where to compute.
    """

    def __init__(self, name: str, network: nn.Module, preprocessing: Preprocessing, device: torch.device) -> None:
        self.name, self.preprocessing, self.device = name, preprocessing, device
        self.at_once = at_once_on(device)
        self.identity = identity_of(name, tensors_checksum(network.state_dict()), preprocessing)
        self.network = network.to(device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
        self.feature_size = len(self(np.zeros((1, preprocessing.side, preprocessing.side, 3), np.uint8))[0])

    @torch.inference_mode()
    def __call__(self, images: Bytes) -> Floats:
        """Vectors of images (B, H, W, C) of any size, grey or colour: (B, D)."""
        vectors: Tensor = self.network(scaled_pixels(images, self.preprocessing, self.device))
        require_vectors(self.name, tuple(vectors.shape), len(images))
        return vectors.float().cpu().numpy()


def at_once_on(device: torch.device) -> int:
    """Images that torch computes at a time; with more, a CPU is slower."""
    return 16 if device.type == "cpu" else 128


def scaled_pixels(images: Bytes, preprocessing: Preprocessing, device: torch.device) -> Tensor:
    """Images (B, H, W, C) of any size as a network wants them, (B, 3, side, side)."""
    mean, std = (torch.tensor(values, device=device).view(1, 3, 1, 1) * 255 for values in preprocessing[1:3])
    squares = np.require(preprocessing.colour_squares(images), requirements=["C", "W"])
    # (B, H, W, C) bytes seen as (B, C, H, W) are channels_last already.
    pixels = torch.from_numpy(squares).to(device).permute(0, 3, 1, 2).float()
    return (pixels - mean) / std


def require_vectors(name: str, shape: tuple[int, ...], count: int) -> None:
    """Refuse what is not one vector per image."""
    require(
        len(shape) == 2 and shape[0] == count,
        f"An encoder must make one vector (B, D) per image, and '{name}' makes {shape} of {count}. "
        "Take one whose output is pooled.",
    )


def identity_of(name: str, checksum: str, preprocessing: Preprocessing) -> str:
    """What distinguishes an encoder from all others whose vectors differ from its own."""
    side, mean, std, interpolation = preprocessing
    # The usual one is not named, so that features stay found that were kept before there were others.
    other = "" if interpolation == "bicubic" else f" {interpolation}"
    return f"{name} {checksum} {side} {' '.join(f'{value:g}' for value in (*mean, *std))}{other}"


def require_interpolation(name: Any, place: str) -> None:
    """Refuse a way to resize that is not known.

    Args:
        name: What was stated.
        place: Where.
    """
    known = get_args(Interpolation)
    require(name in known, f"interpolation in {place} must be one of {', '.join(known)}, got {name!r}. Correct it.")


def tensors_checksum(tensors: Mapping[str, Tensor]) -> str:
    """Hexadecimal digits that stand for the values of named tensors."""
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
