"""The last blocks of a pretrained network, trained further with a head behind them.

What comes before the cut never changes, so its maps are computed once and stand in the place of images. Batch norm of
these blocks keeps the statistics of the pretraining: it is folded into the convolutions, whose weights and biases
learn. Statistics of a mini-batch would change all features at once, and the head was begun from the old ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.config import Bounds, Positive, Section
from dccm.errors import require
from dccm.networks.balance import Balance
from dccm.networks.base import Encoder, EncoderOutput
from dccm.networks.efficientnet import FEATURE_SIZE, PREPROCESSING, STAGES, EfficientNetLite0
from dccm.networks.head import VectorHead

BLOCKS = sum(stage.blocks for stage in STAGES)
"""Of EfficientNet-Lite0."""


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(Section):
    """How much of a pretrained encoder learns too."""

    finetune: Annotated[int, Bounds(0)] = 0
    """Last blocks of the pretrained encoder that are trained, with the convolution behind them; 0: it stays as it
    is."""
    finetune_rate: Positive = 0.01
    """Step size of these blocks, as a multiple of learning_rate, which is the head's."""


class Tail(nn.Module):
    """Maps at the cut, (B, C, H, W) -> the last convolution, (B, 1280, H', W').

    Args:
        network: The network that is cut.
        blocks: How many blocks lie behind the cut.
    """

    def __init__(self, network: EfficientNetLite0, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*list(network.blocks)[BLOCKS - blocks :])
        self.last = network.head
        # Folding makes biases of what was no weight before.
        self.requires_grad_(True)

    def forward(self, maps: Tensor) -> Tensor:
        """The last convolution."""
        last: Tensor = self.last(self.blocks(maps))
        return last


class TailHead(VectorHead):
    """Maps at the cut -> predictions; the map at the cut is the shallow map S.

    Args:
        blocks: How many blocks learn.
        shape: Shape of the maps.
        outputs: Length of the prediction feature.
        balance: Sizes of clusters that are expected.
    """

    def __init__(self, blocks: int, shape: ImageShape, outputs: int, balance: Balance = "uniform") -> None:
        super().__init__(FEATURE_SIZE, outputs, balance)
        expected = map_shape(blocks)
        require(
            shape == expected,
            f"finetune = {blocks} learns from maps of {_by(expected)} of a pretrained encoder, got {_by(shape)}. "
            "Name the encoder, or set finetune = 0.",
        )
        self.channels = shape.channels
        self.tail = Tail(EfficientNetLite0().folded(), blocks)

    @property
    def description(self) -> str:
        """How many blocks learn, and the head."""
        return f"the last {counted(len(self.tail.blocks))} trained and {super().description}"

    @property
    def map_channels(self) -> int:
        """Channels at the cut."""
        return self.channels

    def forward(self, images: Tensor) -> EncoderOutput:
        """All layers."""
        conv = self.conv(images)
        return super().forward(conv)._replace(feature_map=images, conv=conv)

    def conv(self, feature_map: Tensor) -> Tensor:
        """The last convolution."""
        last: Tensor = self.tail(feature_map)
        return last

    def vectors(self, conv: Tensor) -> Tensor:
        """The mean over all places, of length one as the vectors of a frozen encoder are."""
        return F.normalize(conv.float().mean(dim=(2, 3)))


def groups_of(weights: Iterable[nn.Parameter], encoder: Encoder, rate: float, slower: float) -> list[dict[str, Any]]:
    """Weights for an optimizer; pretrained ones take smaller steps.

    Args:
        weights: All of them.
        encoder: Whose tail, if it has one, is pretrained.
        rate: Step size.
        slower: Of pretrained weights, as a multiple of it.
    """
    if not isinstance(encoder, TailHead):
        return [{"params": list(weights)}]
    pretrained = list(encoder.tail.parameters())
    known = set(map(id, pretrained))
    fresh = [weight for weight in weights if id(weight) not in known]
    return [{"params": fresh}, {"params": pretrained, "lr": rate * slower}]


def map_shape(blocks: int) -> ImageShape:
    """Shape of the maps before the last so many blocks."""
    channels, side = EfficientNetLite0.stem_channels, PREPROCESSING.side // 2
    for outputs, stride in _layout()[: BLOCKS - blocks]:
        channels, side = outputs, side // stride
    return ImageShape(channels, side, side)


def counted(blocks: int) -> str:
    """A number of blocks in words."""
    return "block" if blocks == 1 else f"{blocks} blocks"


def _layout() -> list[tuple[int, int]]:
    """Channels that leave each block, and its stride."""
    return [(stage.channels, 1 if number else stage.stride) for stage in STAGES for number in range(stage.blocks)]


def _by(shape: ImageShape) -> str:
    return f"{shape.height} x {shape.width} x {shape.channels}"
