"""Batch norm with the statistics of all workers' images; torch's own for several processes needs a GPU.

Each worker computes on its own rows alone. Only sums over a channel travel: two forward, two back.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

AddUp = Callable[[Tensor], None]
"""Replaces a tensor by its sum over all workers."""


def batch_norm(norm: nn.BatchNorm1d | nn.BatchNorm2d, rows: Tensor, add_up: AddUp) -> Tensor:
    """What a batch norm in training makes of rows, (b, C) or (b, C, H, W), of which other workers have the rest."""
    mean, variance, count = _statistics(rows.detach(), add_up)
    _follow(norm, mean, variance, count)
    with torch.autocast(rows.device.type, enabled=False):
        normed: Tensor = _Normed.apply(  # type: ignore[no-untyped-call]
            rows, norm.weight, norm.bias, mean, variance, count, norm.eps, add_up
        )
    return normed


def _statistics(rows: Tensor, add_up: AddUp) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance of each channel over all workers' rows, (C,), and how many values each is of."""
    channels = rows.shape[1]
    if len(rows):
        mean, spread = torch.batch_norm_update_stats(rows, None, None, 0.0)
    else:
        spread = mean = rows.new_zeros(channels, dtype=torch.float32)
    count = torch.as_tensor([rows.numel() // channels], dtype=torch.float64, device=rows.device)
    # In double precision: the square of a mean is taken away from that of the values.
    own = mean.double()
    sums = torch.cat([own * count, (spread.double() + own.square()) * count, count])
    add_up(sums)
    total = sums[-1]
    middle = sums[:channels] / total
    variance = (sums[channels:-1] / total - middle.square()).clamp_min(0)
    return middle.to(mean.dtype), variance.to(mean.dtype), total


@torch.no_grad()
def _follow(norm: nn.BatchNorm1d | nn.BatchNorm2d, mean: Tensor, variance: Tensor, count: Tensor) -> None:
    """Take the statistics of a batch into the running ones, as torch does."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return
    norm.num_batches_tracked.add_(1)
    share = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean.to(norm.running_mean), share)
    unbiased = variance * (count / (count - 1).clamp_min(1)).to(variance.dtype)
    norm.running_var.lerp_(unbiased.to(norm.running_var), share)


class _Normed(torch.autograd.Function):
    """The rows with their channels' mean taken away and divided by their deviation, then scaled and shifted."""

    @staticmethod
    def forward(
        context: Any,
        rows: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        count: Tensor,
        epsilon: float,
        add_up: AddUp,
    ) -> Tensor:
        """As torch's batch norm with given statistics."""
        context.save_for_backward(rows, weight, mean, variance, count)
        context.epsilon, context.add_up = epsilon, add_up
        context.set_materialize_grads(False)
        if not len(rows):
            return rows.clone()
        normed: Tensor = torch.native_batch_norm(rows, weight, bias, mean, variance, False, 0.0, epsilon)[0]
        return normed

    @staticmethod
    def backward(context: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """The statistics follow the rows, so each row's gradient holds means over all workers' rows."""
        if grad_outputs[0] is None:
            return (None,) * 8
        rows, weight, mean, variance, count = context.saved_tensors
        slope, epsilon = grad_outputs[0].contiguous(memory_format=_format_of(rows)), context.epsilon
        of_weight, of_bias = _of_scale_and_shift(slope, rows, mean, variance, epsilon)
        sums = torch.cat([of_weight, of_bias])
        context.add_up(sums)
        along, level = (sums / count.to(sums.dtype)).chunk(2)
        inverse = (variance + epsilon).rsqrt()
        scale = inverse if weight is None else inverse * weight.to(inverse.dtype)
        # scale * (slope - level - normed * along), with normed = (rows - mean) * inverse, as two factors and one shift.
        factor = -scale * along * inverse
        shift = -scale * level - factor * mean
        shape = (1, -1, *(1 for _ in rows.shape[2:]))
        own = torch.addcmul(shift.view(shape), rows, factor.view(shape))
        own = own.addcmul_(slope, scale.view(shape)).to(rows.dtype)
        learnt = (None, None) if weight is None else (of_weight.to(weight.dtype), of_bias.to(weight.dtype))
        return (own, *learnt, None, None, None, None, None)


def _of_scale_and_shift(
    slope: Tensor, rows: Tensor, mean: Tensor, variance: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Gradients of a scale and a shift of each channel, from this worker's rows, (C,)."""
    if not len(rows):
        return torch.zeros_like(mean), torch.zeros_like(mean)
    _, of_scale, of_shift = torch.ops.aten.native_batch_norm_backward(
        slope, rows, torch.ones_like(mean), mean, variance, None, None, False, epsilon, [False, True, True]
    )
    return of_scale, of_shift


def _format_of(rows: Tensor) -> torch.memory_format:
    last = rows.ndim == 4 and rows.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format
