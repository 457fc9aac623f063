"""The small random perturbations of the local robustness assumption: whole batches, on the images' own device."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.config import NotNegative, Positive, Section
from dccm.errors import require


@dataclass(frozen=True, kw_only=True)
class PerturbationConfig(Section):
    """Ranges from which each image draws its own perturbation, uniformly."""

    rotation: NotNegative = 20.0
    """Largest turn in degrees, either way."""
    shift: NotNegative = 0.18
    """Largest move along each axis, as a share of the image's side."""
    zoom: tuple[float, float] = (0.85, 1.15)
    """Smallest and largest magnification."""
    zoom_axes: Literal["together", "apart"] = "together"
    """Both axes are zoomed by one draw, which keeps proportions, or each by its own."""
    flip: bool = True
    """Mirror left and right half of the time; wrong for writing, where a mirrored sign is another sign."""
    channel_shift: NotNegative = 0.1
    """Largest change of a whole channel's level, of the range 0 to 1."""
    brightness: Positive = 1.0
    """Factor on every perturbed image."""

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.zoom
        require(0 < low <= high, f"zoom must be [low, high] with 0 < low <= high, got {list(self.zoom)}.")


class Perturbation(NamedTuple):
    """What is done to each image of a batch."""

    matrices: Tensor
    """Output coordinates to input coordinates, (B, 2, 3)."""
    levels: Tensor
    """What is added to each channel, (B, C, 1, 1)."""
    brightness: float
    """Factor on all of them."""

    def rows(self, index: Tensor) -> "Perturbation":
        """Of some of the images."""
        return Perturbation(self.matrices[index], self.levels[index], self.brightness)


def perturb(images: Tensor, config: PerturbationConfig, generator: torch.Generator) -> Tensor:
    """Turn, move, zoom, mirror and shift the channels of each image by its own draw (G · x of Eqs. (11) and (12))."""
    return apply(images, draw(images.shape, config, generator))


def draw(shape: Sequence[int], config: PerturbationConfig, generator: torch.Generator) -> Perturbation:
    """A perturbation of its own for each image.

    Args:
        shape: Of all images, (B, C, H, W).
        config: The ranges.
        generator: On the images' device.
    """
    count, channels, height, width = shape
    matrices = _random_affine(count, height / width, config, generator)
    levels = _uniform((count, channels, 1, 1), -config.channel_shift, config.channel_shift, generator)
    return Perturbation(matrices, levels, config.brightness)


def apply(images: Tensor, perturbation: Perturbation) -> Tensor:
    """The perturbed images, of the same shape and memory format; beyond the border the edge pixels go on.

    Args:
        images: Values in [0, 1], (B, C, H, W).
        perturbation: Of as many images.
    """
    count, _, height, width = images.shape
    grid = _base_grid(height, width, images.device) @ perturbation.matrices.transpose(1, 2)
    moved = F.grid_sample(
        images, grid.view(count, height, width, 2), mode="bilinear", padding_mode="border", align_corners=False
    )
    shifted = (moved + perturbation.levels).mul_(perturbation.brightness).clamp_(0, 1)
    # `grid_sample` always answers channels first.
    return shifted.contiguous(memory_format=suggested_format(images))


def perturbed_rows(images: Tensor, index: Tensor, perturbation: Perturbation, rows: slice) -> Tensor:
    """Some of the images, perturbed.

    Args:
        images: All, (B, C, H, W).
        index: Which of them, (b,).
        perturbation: Of all.
        rows: Which of those are wanted; the others are made room for, and no more.
    """
    wanted = index[rows]
    found = apply(images[wanted], perturbation.rows(wanted))
    if len(found) == len(index):
        return found
    spread = found.new_empty(len(index), *found.shape[1:]).contiguous(memory_format=suggested_format(images))
    spread[rows] = found
    return spread


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


def _random_affine(count: int, aspect: float, config: PerturbationConfig, generator: torch.Generator) -> Tensor:
    """One matrix per image that takes output coordinates to input coordinates, (B, 2, 3)."""
    angle = _uniform((count,), -math.radians(config.rotation), math.radians(config.rotation), generator)
    axes = 2 if config.zoom_axes == "apart" else 1
    x_scale, y_scale = (1 / _uniform((count, axes), *config.zoom, generator)).expand(-1, 2).unbind(1)
    # The frame is 2 wide whatever the number of pixels, so a share of the side counts twice.
    move = _uniform((count, 2), -2 * config.shift, 2 * config.shift, generator)
    mirror = torch.ones(count, device=generator.device)
    if config.flip:
        mirror = torch.randint(0, 2, (count,), generator=generator, device=generator.device) * 2.0 - 1
    cos, sin = angle.cos(), angle.sin()
    # Coordinates are relative to each side; `aspect` keeps a turn a turn when the image is not square.
    x_row = torch.stack([cos * x_scale * mirror, -sin * x_scale * aspect, move[:, 0]], dim=1)
    y_row = torch.stack([sin * y_scale / aspect * mirror, cos * y_scale, move[:, 1]], dim=1)
    return torch.stack([x_row, y_row], dim=1)


def _uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device) * (high - low) + low
