"""Products of large matrices, by whichever of torch's libraries is faster on this processor."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.machine import convolves_faster

_SMALLEST = 256
"""Side of the smallest matrix for which packing the weights anew pays; docs/lab/speed.md has what was measured."""
_MAPS = 16
"""Maps that the rows are divided into; with fewer, one thread convolves by the same slow product."""


def product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """What a linear layer says of rows.

    Args:
        rows: (M, C).
        weight: (D, C).
        bias: (D,).

    Returns:
        (M, D).
    """
    large = rows.dtype == torch.float32 and min(rows.shape) >= _SMALLEST
    if not large or rows.device.type != "cpu" or not convolves_faster():
        return F.linear(rows, weight, bias)
    padded = F.pad(rows, (0, 0, 0, -len(rows) % _MAPS)).contiguous()
    positions = padded.view(_MAPS, -1, 1, rows.shape[1]).permute(0, 3, 1, 2)  # Lies in memory as channels_last does.
    convolved = F.conv2d(positions, weight.contiguous()[:, :, None, None], bias)
    return convolved.permute(0, 2, 3, 1).reshape(len(padded), -1)[: len(rows)]
