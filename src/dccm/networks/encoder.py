"""The three encoders of the paper's supplement, for any image from 8 pixels up and any number of channels."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.errors import require

ShallowMap = Literal["pooled", "unpooled"]
Initialisation = Literal["torch", "identity"]
LogitNorm = Literal["none", "batch", "balanced"]
InputSide = int | Literal["full"]

SMALLEST_SIDE = 8


class ImageShape(NamedTuple):
    """Shape of one image."""

    channels: int
    height: int
    width: int

    def shrunk(self, side: InputSide) -> "ImageShape":
        """The same with the shorter side brought down to this one; smaller images stay as they are."""
        shorter = min(self.height, self.width)
        if side == "full" or side >= shorter:
            return self
        return self._replace(height=round(self.height * side / shorter), width=round(self.width * side / shorter))

    def fold(self, side: InputSide, detail: int) -> int:
        """Pixels along each side that enter as one position: up to `detail`, where images are so much larger."""
        entering = self.shrunk(side)
        return min(detail, min(self.height, self.width) // min(entering.height, entering.width))


class EncoderOutput(NamedTuple):
    """What the encoder says of a batch; each layer that something is computed from has its name."""

    feature_map: Tensor
    """Shallow map S, (B, C, H, W)."""
    conv: Tensor
    """Last convolution, (B, 256, H, W): the probe's "Conv"."""
    feature: Tensor
    """Deep feature D of the first linear layer, (B, D): the probe's "Y"."""
    logits: Tensor
    """Outputs of the last linear layer, before their batch norm if there is one, (B, K)."""
    prediction: Tensor
    """Prediction feature z (Eq. (1)): not negative, sums to 1, (B, K)."""


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
        "Enlarge them, for example with --image-size 32.",
    )
    return min(ARCHITECTURES, key=lambda architecture: abs(architecture.side - side))


class Encoder(nn.Module):
    """Images -> shallow map S, deep feature D and prediction feature z.

    Args:
        shape: Shape of the images.
        n_clusters: Length of the prediction feature.
        input_side: Larger images are shrunk on their way in until their shorter side has so many pixels, and get the
            network for that size; full: they enter as they are.
        detail: Images are shrunk up to so many times less on each side, and the squares of pixels which that leaves
            for one become the channels of one position: their details are seen at hardly any cost.
        shallow_map: Take S of the 32-pixel network behind the pooling that follows it, or before; the other two
            networks have no pooling there.
        logit_norm: Norm on the outputs of the last linear layer, which balances the clusters; see `logit_norm_layer`.
        initialisation: PyTorch's own start, or linear layers like the identity and Kaiming-normal convolutions.
    """

    def __init__(
        self,
        shape: ImageShape,
        n_clusters: int,
        *,
        input_side: InputSide = "full",
        detail: int = 1,
        shallow_map: ShallowMap = "pooled",
        logit_norm: LogitNorm = "none",
        initialisation: Initialisation = "torch",
    ) -> None:
        super().__init__()
        entering = shape.shrunk(input_side)
        self.fold = fold = shape.fold(input_side, detail)
        seen = (fold * entering.height, fold * entering.width)
        self.seen = None if seen == shape[1:] else seen
        self.architecture = nearest_architecture(entering)
        padded = min(entering.height, entering.width) < self.architecture.smallest
        shallow, deep = self.architecture.shallow, self.architecture.deep
        if shallow_map == "unpooled" and shallow[-1][0] == "pool":
            shallow, deep = shallow[:-1], (shallow[-1], *deep)
        self.shallow, self.map_channels = _layers(shallow, fold**2 * shape.channels, padded)
        self.deep, channels = _layers(deep, self.map_channels, padded)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.hidden = nn.Sequential(
            OrderedDict(
                linear=nn.Linear(channels, self.architecture.hidden),
                norm=nn.BatchNorm1d(self.architecture.hidden),
                relu=nn.ReLU(),
            )
        )
        self.output = nn.Linear(self.architecture.hidden, n_clusters)
        self.output_norm = logit_norm_layer(logit_norm, n_clusters)
        if initialisation == "identity":
            self.apply(_start_like_identity)

    @property
    def feature_size(self) -> int:
        """Length of the deep feature D."""
        return self.architecture.hidden

    def forward(self, images: Tensor) -> EncoderOutput:
        """Encode images in [0, 1], (B, C, H, W)."""
        feature_map = self.shallow(self._entering(images))
        conv = self.deep(feature_map)
        feature = self.hidden(self.pool(conv).flatten(1))
        logits = self.output(feature)
        outputs = self.output_norm(logits)
        wide = torch.promote_types(outputs.dtype, torch.float32)  # Thresholds ask for more digits than bfloat16 has.
        return EncoderOutput(feature_map, conv, feature, logits, torch.softmax(outputs, dim=1, dtype=wide))

    def _entering(self, images: Tensor) -> Tensor:
        """The images at the size in which they are seen, squares of their pixels folded into channels."""
        if self.seen is None and self.fold == 1:
            return images
        last = images.is_contiguous(memory_format=torch.channels_last)
        if self.seen is not None:
            images = F.interpolate(images, size=self.seen, mode="bilinear", antialias=True, align_corners=False)
        images = F.pixel_unshuffle(images, self.fold)
        return images.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


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


def _layers(layers: tuple[tuple[str, int, int], ...], channels: int, padded: bool) -> tuple[nn.Sequential, int]:
    """The named layers, and how many channels come out; convolution = convolution + batch norm + ReLU.

    Where pooling follows, ReLU comes behind it: the largest of some values is the same before and after ReLU, and
    there are fewer of them.
    """
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    kinds = [kind for kind, _, _ in layers]
    for number, (kind, kernel, wanted) in enumerate(layers):
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        if kind == "pool":
            parts["pool"] = nn.MaxPool2d(kernel)
        else:
            # Batch norm removes any bias of the convolution before it.
            parts["conv"] = nn.Conv2d(channels, wanted, kernel, padding=kernel // 2 if padded else 0, bias=False)
            parts["norm"] = nn.BatchNorm2d(wanted)
            channels = wanted
        if kinds[number : number + 2] != ["conv", "pool"] and "conv" in kinds[max(0, number - 1) : number + 1]:
            parts["relu"] = nn.ReLU(inplace=True)
        modules[f"{kind}{number}"] = nn.Sequential(parts)
    return nn.Sequential(modules), channels


def _start_like_identity(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.eye_(module.weight)
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
