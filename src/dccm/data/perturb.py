"""The small random perturbations of the local robustness assumption: whole batches, on the images' own device."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.errors import require


@dataclass(frozen=True, kw_only=True)
class PerturbationConfig:
    """Ranges from which each image draws its own perturbation, uniformly."""

    rotation: float = 20.0
    """Largest turn in degrees, either way."""
    shift: float = 0.18
    """Largest move along each axis, as a share of the image's side."""
    zoom: tuple[float, float] = (0.85, 1.15)
    """Smallest and largest magnification."""
    flip: bool = True
    """Mirror left and right half of the time; wrong for writing, where a mirrored sign is another sign."""
    channel_shift: float = 0.1
    """Largest change of a whole channel's level, of the range 0 to 1."""
    brightness: float = 1.0
    """Factor on every perturbed image."""

    def __post_init__(self) -> None:
        low, high = self.zoom
        require(0 < low <= high, f"zoom must be [low, high] with 0 < low <= high, got {list(self.zoom)}.")
        require(self.brightness > 0, f"brightness must be above 0, got {self.brightness:g}. 1 changes nothing.")
        for name in ("rotation", "shift", "channel_shift"):
            value = getattr(self, name)
            require(value >= 0, f"{name} must not be negative, got {value}. 0 turns a perturbation off.")


def perturb(images: Tensor, config: PerturbationConfig, generator: torch.Generator) -> Tensor:
    """Turn, move, zoom, mirror and shift the channels of each image by its own draw (G · x of Eqs. (11) and (12)).

    Args:
        images: Values in [0, 1], (B, C, H, W).
        config: The ranges.
        generator: On the images' device.

    Returns:
        Perturbed images of the same shape and memory format; beyond the border the edge pixels go on.
    """
    count, channels, height, width = images.shape
    matrices = _random_affine(count, height / width, config, generator, images.device)
    grid = _base_grid(height, width, images.device) @ matrices.transpose(1, 2)
    moved = F.grid_sample(
        images, grid.view(count, height, width, 2), mode="bilinear", padding_mode="border", align_corners=False
    )
    levels = _uniform((count, channels, 1, 1), -config.channel_shift, config.channel_shift, generator, images.device)
    shifted = (moved + levels).mul_(config.brightness).clamp_(0, 1)
    # `grid_sample` always answers channels first.
    return shifted.contiguous(memory_format=suggested_format(images))


def suggested_format(images: Tensor) -> torch.memory_format:
    """The memory format that a batch of images is in."""
    last = images.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


def _base_grid(height: int, width: int, device: torch.device) -> Tensor:
    """Homogeneous coordinates (x, y, 1) of each output pixel, (H * W, 3), in the [-1, 1] frame of `grid_sample`."""
    rows = torch.arange(height, device=device).add(0.5).mul(2 / height).sub(1)
    columns = torch.arange(width, device=device).add(0.5).mul(2 / width).sub(1)
    x, y = torch.meshgrid(columns, rows, indexing="xy")
    return torch.stack([x, y, torch.ones_like(x)], dim=-1).view(-1, 3)


def _random_affine(
    count: int, aspect: float, config: PerturbationConfig, generator: torch.Generator, device: torch.device
) -> Tensor:
    """One matrix an image that takes output coordinates to input coordinates, (B, 2, 3)."""
    angle = _uniform((count,), -math.radians(config.rotation), math.radians(config.rotation), generator, device)
    scale = 1 / _uniform((count,), *config.zoom, generator, device)
    # The frame is 2 wide whatever the number of pixels, so a share of the side counts twice.
    move = _uniform((count, 2), -2 * config.shift, 2 * config.shift, generator, device)
    mirror = torch.ones(count, device=device)
    if config.flip:
        mirror = torch.randint(0, 2, (count,), generator=generator, device=device) * 2.0 - 1
    cos, sin = angle.cos() * scale, angle.sin() * scale
    # Coordinates are relative to each side; `aspect` keeps a turn a turn when the image is not square.
    x_row = torch.stack([cos * mirror, -sin * aspect, move[:, 0]], dim=1)
    y_row = torch.stack([sin / aspect * mirror, cos, move[:, 1]], dim=1)
    return torch.stack([x_row, y_row], dim=1)


def _uniform(
    shape: tuple[int, ...], low: float, high: float, generator: torch.Generator, device: torch.device
) -> Tensor:
    return torch.rand(shape, generator=generator, device=device) * (high - low) + low
