"""The three encoders of the paper's supplement, for any image from 8 pixels up and any number of channels."""

import math
from collections import OrderedDict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import SMALLEST_SIDE, ImageShape
from dccm.errors import require
from dccm.networks.base import EncoderOutput, InputSide, LogitNorm, NetworkConfig


@dataclass(frozen=True)
class Architecture:
    """One column of Table 4 of the supplement."""

    side: int
    """Side of the images that it was made for."""
    shallow: tuple[tuple[str, int, int], ...]
    """Layers up to and with S: ("conv", kernel, channels) or ("pool", kernel, 0)."""
    deep: tuple[tuple[str, int, int], ...]
    """Layers behind S."""
    hidden: int
    """Size of the deep feature D."""
    smallest: int
    """Below this side, convolutions without padding leave nothing of the image."""


_LARGE_SHALLOW = (("conv", 5, 64), ("conv", 5, 64), ("pool", 4, 0), ("conv", 3, 128))
_LARGE_DEEP = (("conv", 3, 128), ("pool", 4, 0), ("conv", 1, 256))
ARCHITECTURES = (
    Architecture(
        32,
        shallow=(("conv", 3, 64), ("conv", 3, 64), ("pool", 2, 0)),
        deep=(("conv", 3, 128), ("pool", 2, 0), ("conv", 3, 256)),
        hidden=64,
        smallest=20,
    ),
    Architecture(64, shallow=_LARGE_SHALLOW, deep=_LARGE_DEEP, hidden=256, smallest=40),
    Architecture(96, shallow=_LARGE_SHALLOW, deep=_LARGE_DEEP, hidden=64, smallest=40),
)


def nearest_architecture(shape: ImageShape) -> Architecture:
    """The column of Table 4 whose image side is nearest to the shorter side of these images."""
    side = min(shape.height, shape.width)
    require(
        side >= SMALLEST_SIDE,
        f"images must be at least {SMALLEST_SIDE} pixels on each side, got {shape.height} x {shape.width}. "
        "Enlarge them, for example with image_size = 32.",
    )
    return min(ARCHITECTURES, key=lambda architecture: abs(architecture.side - side))


def shrunk(shape: ImageShape, side: InputSide) -> ImageShape:
    """The shape with the shorter side brought down to this one; smaller images stay as they are."""
    shorter = min(shape.height, shape.width)
    if side == "full" or side >= shorter:
        return shape
    return shape._replace(height=round(shape.height * side / shorter), width=round(shape.width * side / shorter))


class PaperEncoder(nn.Module):
    """Images -> shallow map S, deep feature D and prediction feature z.

    Args:
        config: Its settings.
        shape: Shape of the images.
        outputs: Length of the prediction feature.
    """

    def __init__(self, config: NetworkConfig, shape: ImageShape, outputs: int) -> None:
        super().__init__()
        self.entering = shrunk(shape, config.input_side)
        shorter = min(self.entering.height, self.entering.width)
        # Squares of this side enter as one position, where images are that much larger.
        self.fold = min(config.detail, min(shape.height, shape.width) // shorter)
        seen = (self.fold * self.entering.height, self.fold * self.entering.width)
        self.seen = None if seen == shape[1:] else seen
        self.architecture = _architecture(config, self.entering)
        padded = shorter < self.architecture.smallest
        shallow, deep = self.architecture.shallow, self.architecture.deep
        if config.shallow_map == "unpooled" and shallow[-1][0] == "pool":
            shallow, deep = shallow[:-1], (shallow[-1], *deep)
        self.shallow, self.map_channels = _layers(shallow, self.fold**2 * shape.channels, config.width, padded)
        self.deep, channels = _layers(deep, self.map_channels, config.width, padded)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.hidden = nn.Sequential(
            OrderedDict(
                linear=nn.Linear(channels, self.architecture.hidden),
                norm=nn.BatchNorm1d(self.architecture.hidden),
                relu=nn.ReLU(),
            )
        )
        self.output = nn.Linear(self.architecture.hidden, outputs)
        self.output_norm = logit_norm_layer(config.logit_norm, outputs)
        if config.initialisation == "identity":
            self.apply(_start_like_identity)

    @property
    def logit_norm(self) -> nn.Module:
        """That of the settings."""
        return self.output_norm

    @property
    def description(self) -> str:
        """Which of the paper's networks it is, and how it sees the images."""
        text = f"the paper's network for {self.architecture.side} pixels"
        if self.seen is not None or self.fold > 1:
            height, width = self.fold * self.entering.height, self.fold * self.entering.width
            text += f", which sees them at {height} x {width}"
        return text + (f" in squares of {self.fold} x {self.fold}" if self.fold > 1 else "")

    @property
    def feature_size(self) -> int:
        """Length of the deep feature D."""
        return self.architecture.hidden

    def forward(self, images: Tensor) -> EncoderOutput:
        """Encode images in [0, 1], (B, C, H, W)."""
        feature_map = self.feature_map(images)
        conv = self.conv(feature_map)
        feature = self.feature(conv)
        logits = self.output(feature)
        outputs = self.output_norm(logits)
        wide = torch.promote_types(outputs.dtype, torch.float32)  # Thresholds ask for more digits than bfloat16 has.
        return EncoderOutput(feature_map, conv, feature, logits, torch.softmax(outputs, dim=1, dtype=wide))

    def feature_map(self, images: Tensor) -> Tensor:
        """The shallow map S of images."""
        feature_map: Tensor = self.shallow(self._as_seen(images))
        return feature_map

    def conv(self, feature_map: Tensor) -> Tensor:
        """The last convolution, from a shallow map."""
        conv: Tensor = self.deep(feature_map)
        return conv

    def feature(self, conv: Tensor) -> Tensor:
        """The deep feature D, from the last convolution."""
        feature: Tensor = self.hidden(self.pool(conv).flatten(1))
        return feature

    def _as_seen(self, images: Tensor) -> Tensor:
        """The images at the size in which they are seen, squares of their pixels folded into channels."""
        if self.seen is None and self.fold == 1:
            return images
        last = images.is_contiguous(memory_format=torch.channels_last)
        if self.seen is not None:
            images = F.interpolate(images, size=self.seen, mode="bilinear", antialias=True, align_corners=False)
        images = F.pixel_unshuffle(images, self.fold)
        return images.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


def _architecture(config: NetworkConfig, entering: ImageShape) -> Architecture:
    if config.architecture == "nearest":
        return nearest_architecture(entering)
    [chosen] = [architecture for architecture in ARCHITECTURES if architecture.side == config.architecture]
    fewest = math.prod(size for kind, size, _ in (*chosen.shallow, *chosen.deep) if kind == "pool")
    require(
        min(entering.height, entering.width) >= fewest,
        f"architecture = {chosen.side} needs images of at least {fewest} pixels on each side, "
        f"got {entering.height} x {entering.width}. Take 'nearest', or enlarge them.",
    )
    return chosen


def logit_norm_layer(kind: LogitNorm, n_clusters: int) -> nn.Module:
    """No norm, batch norm with a scale and shift for each cluster, or batch norm with one scale for all of them."""
    if kind == "none":
        return nn.Identity()
    return nn.BatchNorm1d(n_clusters) if kind == "batch" else BalancedNorm(n_clusters)


class BalancedNorm(nn.Module):
    """Batch norm without a shift and with a single scale for all clusters.

    Every cluster's logit keeps mean 0 and the same deviation over the batch, so that no cluster can be talked down by
    its own scale and shift; only how sure all of them are is learnt.
    """

    def __init__(self, n_clusters: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(n_clusters, affine=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, logits: Tensor) -> Tensor:
        """Norm the logits, (B, K)."""
        normed: Tensor = self.norm(logits)
        return normed * self.scale


def _layers(
    layers: tuple[tuple[str, int, int], ...], channels: int, factor: float, padded: bool
) -> tuple[nn.Sequential, int]:
    """The named layers, and how many channels come out; convolution = convolution + batch norm + ReLU.

    Where pooling follows, ReLU comes behind it: the largest of some values is the same before and after ReLU, and
    there are fewer of them.
    """
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    kinds = [kind for kind, _, _ in layers]
    for number, (kind, kernel, usual) in enumerate(layers):
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        if kind == "pool":
            parts["pool"] = nn.MaxPool2d(kernel)
        else:
            wanted = max(1, round(factor * usual))
            # Batch norm removes any bias of the convolution before it.
            parts["conv"] = _Convolution(channels, wanted, kernel, padding=kernel // 2 if padded else 0, bias=False)
            parts["norm"] = nn.BatchNorm2d(wanted)
            channels = wanted
        if kinds[number : number + 2] != ["conv", "pool"] and "conv" in kinds[max(0, number - 1) : number + 1]:
            parts["relu"] = nn.ReLU(inplace=True)
        modules[f"{kind}{number}"] = nn.Sequential(parts)
    return nn.Sequential(modules), channels


class _Convolution(nn.Conv2d):
    """A convolution without bias; where the kernel covers the whole map it is computed as the product that it is.

    At 20 pixels the last one does: the product takes less than half of the convolution's time.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Convolve maps, (B, C, H, W)."""
        if images.shape[2:] != self.weight.shape[2:] or any(self.padding):
            return super().forward(images)
        rows, kernels = (tensor.permute(0, 2, 3, 1).flatten(1) for tensor in (images, self.weight))  # channels_last
        convolved: Tensor = F.linear(rows, kernels).unflatten(1, (-1, 1, 1))
        return convolved


def _start_like_identity(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.eye_(module.weight)
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
