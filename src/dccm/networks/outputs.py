"""The last layer of an encoder for other clusters than those that it was trained for."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from dccm.networks.balance import ShareNorm
from dccm.networks.base import Encoder


def taken_over(own: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a trained network in one that has more outputs, or fewer; what is new stays as it is.

    Args:
        own: The weights of the network that takes them over, by name.
        trained: Those of the trained one.
    """
    taken = {name: weight.clone() for name, weight in own.items()}
    for name, weight in trained.items():
        shared = tuple(slice(min(sides)) for sides in zip(weight.shape, taken[name].shape))
        taken[name][shared] = weight[shared].to(taken[name])
    return taken


@torch.no_grad()
def begin_outputs(
    encoder: Encoder, centres: Mapping[int, Tensor], middle: Tensor, known: Sequence[int], sizes: Tensor
) -> None:
    """Let outputs begin anew: each is largest for features that lie, from the middle of all, where its centre lies.

    Args:
        encoder: Its last layer is changed.
        centres: Mean feature of the images of each cluster whose output begins, (D,).
        middle: Mean feature of all images, (D,).
        known: Clusters whose output is trained already.
        sizes: Images of each cluster, (K,).
    """
    if not centres:
        return
    layer, middle = encoder.output, middle.to(encoder.output.weight)
    like = list(known) or list(range(len(layer.weight)))
    length = layer.weight[like].norm(dim=1).mean()
    level = (layer.weight[like] @ middle + layer.bias[like]).mean()
    for cluster, centre in centres.items():
        direction = centre.to(layer.weight) - middle
        layer.weight[cluster] = length * direction / direction.norm().clamp_min(1e-12)
        layer.bias[cluster] = level - layer.weight[cluster] @ middle
    _begin_norm(encoder.logit_norm, list(centres), like, len(layer.weight))
    if isinstance(encoder.logit_norm, ShareNorm):
        encoder.logit_norm.expect(sizes.to(layer.weight.device))


def _begin_norm(norm: nn.Module, begun: list[int], like: list[int], outputs: int) -> None:
    """What a norm has for each output is for new ones what it is for others in the mean."""
    for value in norm.state_dict().values():
        if value.shape == (outputs,):
            value[begun] = value[like].mean()
