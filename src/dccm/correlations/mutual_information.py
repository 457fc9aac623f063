"""Deep and shallow features of the same class share information: the Jensen-Shannon estimate and its loss."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.correlations.triplets import Pairs
from dccm.networks.critic import Critic


def jsd_mutual_information(
    joint: Tensor, marginal: Tensor, joint_weight: Tensor | None = None, marginal_weight: Tensor | None = None
) -> Tensor:
    """Jensen-Shannon mutual information of deep and shallow features (Eq. (13)).

    Args:
        joint: Critic's scores of pairs from the joint distribution, (M, P).
        marginal: Scores of pairs from the product of the marginals, (M', P).
        joint_weight: Weight of each joint pair, (M,); equal if left out.
        marginal_weight: Weight of each marginal pair, (M',); a side without any weight counts as 0.
    """
    return _weighted_mean(-F.softplus(-joint), joint_weight) - _weighted_mean(F.softplus(marginal), marginal_weight)


def triplet_information_loss(
    critic: Critic, positions: Tensor, features: Tensor, positive: Pairs, negative: Pairs
) -> Tensor:
    """Negative mutual information over class-related sets, by sampled pairs (L_MI, Eq. (14)).

    Args:
        critic: T, trained by the same loss.
        positions: Shallow maps S as lists of positions, (B, P, C).
        features: Deep features D, (B, D).
        positive: Pairs taken as drawn from the joint distribution.
        negative: Pairs taken as drawn from the product of the marginals.
    """
    maps = torch.cat([positive.partner, negative.partner])
    anchors = torch.cat([positive.anchor, negative.anchor])
    joint, marginal = critic(positions, features, maps, anchors).split([len(positive.anchor), len(negative.anchor)])
    return -jsd_mutual_information(joint, marginal, positive.weight, negative.weight)


def _weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return values.mean()
    return (values.mean(dim=1) * weight).sum() / weight.sum().clamp_min(1)
