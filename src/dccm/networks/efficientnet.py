"""EfficientNet-Lite0, frozen: the small network whose weights come with a package.

The layers are those of EfficientNet-B0 (Tan and Le, ICML 2019), made of the inverted residual blocks of MobileNetV2
(Sandler et al., CVPR 2018). Lite means: no squeeze and excitation, and ReLU6 in place of swish. It was trained in
TensorFlow, which decides how borders are padded and the epsilon of batch norm.
"""

import math
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import fuse_conv_bn_eval

from dccm.networks.feature_encoder import Preprocessing

PREPROCESSING = Preprocessing(224, (127 / 255,) * 3, (128 / 255,) * 3)
"""Bytes become (x - 127) / 128. With ImageNet's mean and deviation, which others want, the features are worse."""
FEATURE_SIZE = 1280
_EPSILON = 1e-3
"""TensorFlow's for batch norm."""


class Stage(NamedTuple):
    """Blocks in a row, a row of Table 1 of EfficientNet."""

    expansion: int
    kernel: int
    stride: int
    """Of the first of them; the others have 1."""
    channels: int
    blocks: int


STAGES = (
    Stage(1, 3, 1, 16, 1),
    Stage(6, 3, 2, 24, 2),
    Stage(6, 5, 2, 40, 2),
    Stage(6, 3, 2, 80, 3),
    Stage(6, 5, 1, 112, 3),
    Stage(6, 5, 2, 192, 4),
    Stage(6, 3, 1, 320, 1),
)
_STEM = 32


class NormedConv(nn.Module):
    """A convolution, batch norm, and ReLU6 if it is wanted.

    Args:
        inputs: Channels that come in.
        outputs: Channels that go out.
        kernel: Side of the kernel.
        stride: Of the convolution.
        depthwise: Each channel for itself.
        bounded: With ReLU6 behind it.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, *, depthwise: bool = False, bounded: bool = True
    ) -> None:
        super().__init__()
        groups = inputs if depthwise else 1
        # With stride 1 both ways of padding are the same, and the convolution's own costs nothing.
        self.padding = 0 if stride > 1 else kernel // 2
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, self.padding, groups=groups, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs, eps=_EPSILON)
        self.bounded = bounded

    def forward(self, images: Tensor) -> Tensor:
        """(B, inputs, H, W) -> (B, outputs, H / stride, W / stride)."""
        if self.conv.stride[0] > 1:
            images = pad_as_tensorflow(images, self.conv.kernel_size[0], self.conv.stride[0])
        made: Tensor = self.norm(self.conv(images))
        return F.relu6(made, inplace=not self.training) if self.bounded else made

    def fold(self) -> None:
        """Move batch norm, which is linear once it is frozen, into the convolution."""
        assert isinstance(self.norm, nn.BatchNorm2d)
        self.conv, self.norm = fuse_conv_bn_eval(self.conv, self.norm), nn.Identity()


def pad_as_tensorflow(images: Tensor, kernel: int, stride: int) -> Tensor:
    """Zeros around images so that a convolution gives ceil(size / stride); the odd one goes right and below."""
    height, width = (max((math.ceil(size / stride) - 1) * stride + kernel - size, 0) for size in images.shape[2:])
    return F.pad(images, (width // 2, width - width // 2, height // 2, height - height // 2))


class InvertedResidual(nn.Module):
    """Widen, look around in each channel, narrow; what came in is added where nothing changed its shape."""

    def __init__(self, inputs: int, stage: Stage, stride: int) -> None:
        super().__init__()
        wide = inputs * stage.expansion
        self.expand = NormedConv(inputs, wide, 1) if stage.expansion > 1 else None
        self.depthwise = NormedConv(wide, wide, stage.kernel, stride, depthwise=True)
        self.project = NormedConv(wide, stage.channels, 1, bounded=False)
        self.adds = stride == 1 and inputs == stage.channels

    def forward(self, images: Tensor) -> Tensor:
        """(B, inputs, H, W) -> (B, channels, H / stride, W / stride)."""
        wide = images if self.expand is None else self.expand(images)
        made: Tensor = self.project(self.depthwise(wide))
        return made + images if self.adds else made


class EfficientNetLite0(nn.Module):
    """Scaled images (B, 3, 224, 224) -> the mean of the last convolution over all places, (B, 1280)."""

    stem_channels = _STEM

    def __init__(self) -> None:
        super().__init__()
        self.stem = NormedConv(3, _STEM, 3, 2)
        blocks, inputs = [], _STEM
        for stage in STAGES:
            for number in range(stage.blocks):
                blocks.append(InvertedResidual(inputs, stage, 1 if number else stage.stride))
                inputs = stage.channels
        self.blocks = nn.Sequential(*blocks)
        self.head = NormedConv(inputs, FEATURE_SIZE, 1)

    def forward(self, images: Tensor) -> Tensor:
        """The features, (B, 1280)."""
        last: Tensor = self.head(self.blocks(self.stem(images)))
        return last.mean(dim=(2, 3))

    def folded(self) -> "EfficientNetLite0":
        """Itself, with batch norm in the convolutions: the same features in less time, and nothing left to train."""
        self.eval()
        for module in self.modules():
            if isinstance(module, NormedConv):
                module.fold()
        return self
