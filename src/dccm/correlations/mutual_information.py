"""Deep and shallow features of the same class share information: the Jensen-Shannon estimate and its loss."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.correlations.triplets import Pairs
from dccm.networks.critic import Critic
from dccm.networks.product import product


class Held(NamedTuple):
    """Which maps are here: every so many, from the first on."""

    first: int
    every: int


_ROWS = 1024
"""Pairs times positions in one piece of the critic's work on a CPU: small enough for the cache."""


def jsd_mutual_information(
    joint: Tensor, marginal: Tensor, joint_weight: Tensor | None = None, marginal_weight: Tensor | None = None
) -> Tensor:
    """Jensen-Shannon mutual information of deep and shallow features (Eq. (13)).

    Args:
        joint: Critic's scores of pairs from the joint distribution, (M, P).
        marginal: Scores of pairs from the product of the marginals, (M', P).
        joint_weight: Weight of each joint pair, (M,); equal if left out.
        marginal_weight: Weight of each marginal pair, (M',); equal if left out. A side without any weight counts as 0.
    """
    return _weighted_mean(-F.softplus(-joint), joint_weight) - _weighted_mean(F.softplus(marginal), marginal_weight)


def triplet_information_loss(
    critic: Critic, positions: Tensor, features: Tensor, positive: Pairs, negative: Pairs, held: Held | None = None
) -> Tensor:
    """Negative mutual information over class-related sets, by sampled pairs (L_MI, Eq. (14)).

    It is a weighted sum over pairs: where the maps are divided, the parts add up to the whole.

    Args:
        critic: T, trained by the same loss.
        positions: Shallow maps S as lists of positions, (B, P, C).
        features: Deep features D, (B, D).
        positive: Pairs taken as drawn from the joint distribution.
        negative: Pairs taken as drawn from the product of the marginals.
        held: Which maps are here, where they are divided; None: all of them.
    """
    if held is not None or positions.device.type == "cpu":
        first = critic.of_map(positions), critic.of_feature(features)
        later = critic.middle.weight, critic.middle.bias, critic.score.weight, critic.score.bias
        maps, anchors, sign, weight = _once_each(positive, negative, len(features))
        if held is not None:
            here = (maps % held.every == held.first).nonzero().squeeze(1)
            maps, anchors, sign, weight = maps[here] // held.every, anchors[here], sign[here], weight[here]
        with torch.autocast("cpu", enabled=False):  # The first layer has the wanted precision already.
            loss: Tensor = _LossInPieces.apply(  # type: ignore[no-untyped-call]
                *first, *later, maps, anchors, sign, weight / positions.shape[1]
            )
        return loss
    # A GPU has memory for all pairs at once, autograd follows its lower precision, and nothing waits for a count.
    maps = torch.cat([positive.partner, negative.partner])
    anchors = torch.cat([positive.anchor, negative.anchor])
    joint, marginal = critic(positions, features, maps, anchors).split([len(positive.anchor), len(negative.anchor)])
    return -jsd_mutual_information(joint, marginal, positive.weight, negative.weight)


def _once_each(positive: Pairs, negative: Pairs, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Partner, anchor, sign in the loss and weight of each pair, all (M,): equal ones once, those without weight never.

    A sample that is linked to no other is its own partner, and has that pair already: then the critic works less.
    """
    keys, weights = [], []
    for pairs, is_negative in ((positive, 0), (negative, 1)):
        keys.append((pairs.partner * size + pairs.anchor) * 2 + is_negative)  # Numbers are sorted sooner than triples.
        weights.append(pairs.weight / pairs.weight.sum().clamp_min(1))
    weight = torch.cat(weights)
    counts = weight.nonzero().squeeze(1)
    found, same = torch.cat(keys)[counts].unique(return_inverse=True)
    total = weight.new_zeros(len(found)).index_add_(0, same, weight[counts])
    return found // (2 * size), found // 2 % size, (found % 2 * 2 - 1).to(weight.dtype), total


class _LossInPieces(torch.autograd.Function):
    """L_MI with its gradient, piece by piece: no layer of the critic ever exists for all pairs.

    Each piece goes forward and back at once while it is in the cache; the gradient waits for `backward`. The values
    are those of `Critic.forward` and `jsd_mutual_information`, computed in the precision of `maps` and `others`; what
    is summed over pieces is summed in single precision at least.
    """

    @staticmethod
    def forward(
        context: Any,
        maps: Tensor,
        others: Tensor,
        middle: Tensor,
        middle_bias: Tensor,
        score: Tensor,
        score_bias: Tensor,
        map_index: Tensor,
        feature_index: Tensor,
        sign: Tensor,
        weight: Tensor,
    ) -> Tensor:
        """Sum of weight * softplus(sign * score) over all pairs and positions."""
        inputs = (maps, others, middle, middle_bias, score, score_bias)
        gradients = [torch.zeros_like(tensor, dtype=weight.dtype) for tensor in inputs]
        of_maps, of_others, of_middle, of_middle_bias, of_score, of_score_bias = gradients
        middle, middle_bias, score, score_bias = (tensor.to(maps.dtype) for tensor in inputs[2:])
        count, width = maps.shape[1:]
        loss = weight.new_zeros(())
        pieces = -(-len(map_index) * count // _ROWS)
        for part in torch.arange(len(map_index)).tensor_split(pieces) if pieces else ():
            which, whose = map_index[part], feature_index[part]
            # index_select copies whole maps; an index in brackets would take their values one by one.
            first = maps.index_select(0, which).add_(others.index_select(0, whose).unsqueeze(1)).relu_().view(-1, width)
            second = product(first, middle, middle_bias).relu_()
            scores = torch.addmv(score_bias, second, score[0]).view(-1, count)
            signed = scores * sign[part, None]  # Here at the precision of the loss.
            loss += weight[part] @ F.softplus(signed).sum(dim=1)
            at_scores = (signed.sigmoid_() * (weight * sign)[part, None]).view(-1)
            of_score_bias += at_scores.sum()
            at_scores = at_scores.to(maps.dtype)
            of_score[0] += at_scores @ second
            at_second = second.sign_().mul_(score).mul_(at_scores.unsqueeze(1))  # ReLU lets pass where it was positive.
            of_middle_bias += at_second.sum(dim=0)
            of_middle += product(at_second.T, first.T)
            at_first = product(at_second, middle.T).mul_(first.sign_()).view(-1, count, width)
            of_maps.index_add_(0, which, at_first.to(weight.dtype))
            of_others.index_add_(0, whose, at_first.sum(dim=1, dtype=weight.dtype))
        context.save_for_backward(*gradients)
        return loss

    @staticmethod
    def backward(context: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient found on the way, for all tensors that have one."""
        return (*(gradient * grad_outputs[0] for gradient in context.saved_tensors), None, None, None, None)


def _weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return values.mean()
    return (values.mean(dim=1) * weight).sum() / weight.sum().clamp_min(1)
