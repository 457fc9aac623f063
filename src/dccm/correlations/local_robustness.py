"""A small perturbation changes neither cluster nor links: clean images supervise their perturbed copies."""

import torch
from torch import Tensor

from dccm.correlations.pseudo_graph import GraphLoss, SaturatedPairs, pseudo_graph_loss
from dccm.correlations.pseudo_label import LabelLoss, pseudo_label_loss
from dccm.correlations.targets import Targets


def invariance_loss(clean: Tensor, perturbed: Tensor) -> Tensor:
    """Distance between the predictions of an image and of its perturbed copy (Eq. (11)), mean over images.

    Args:
        clean: Predictions of the clean images, (B, K).
        perturbed: Predictions of their perturbed copies, (B, K).
    """
    distance: Tensor = torch.linalg.vector_norm(clean - perturbed, dim=1)
    return distance.mean()


def local_robustness_loss(
    perturbed: Tensor,
    targets: Targets,
    *,
    graph_loss: GraphLoss = "cross_entropy",
    label_loss: LabelLoss = "cross_entropy",
    saturated: SaturatedPairs = "rest",
) -> tuple[Tensor, Tensor]:
    """Both terms of L_LR (Eq. (12)): L'_PG and L'_PL, unweighted.

    Args:
        perturbed: Predictions of the perturbed images, (B, K).
        targets: What was mined from the same images, clean.
        graph_loss: See `pseudo_graph_loss`.
        label_loss: See `pseudo_label_loss`.
        saturated: See `pair_cross_entropy`.
    """
    graph = pseudo_graph_loss(perturbed, targets.graph, kind=graph_loss, saturated=saturated)
    return graph, pseudo_label_loss(perturbed, targets.label, targets.confident, kind=label_loss)
