"""Which cluster an image is surely in: pseudo-label, confidence and their loss."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

LabelLoss = Literal["cross_entropy", "binary_cross_entropy"]

_SMALLEST = 1e-30
"""Keeps the logarithm finite; small enough that the softmax's own slope still cancels the logarithm's."""


def pseudo_label(prediction: Tensor) -> tuple[Tensor, Tensor]:
    """The most likely cluster y and its probability p (Eq. (7)).

    Args:
        prediction: Prediction features, (B, K).

    Returns:
        Cluster numbers, (B,), and their probabilities, (B,); no gradient flows through either.
    """
    probability, label = prediction.detach().max(dim=1)
    return label, probability


def confident(probability: Tensor, threshold: float) -> Tensor:
    """Mark the samples whose pseudo-label may be trained on (V, Eq. (8)).

    Args:
        probability: Probability of the most likely cluster, (B,).
        threshold: The paper's thres_2.

    Returns:
        (B,) zeros and ones.
    """
    return (probability >= threshold).to(probability.dtype)


def pseudo_label_loss(
    prediction: Tensor, label: Tensor, confident: Tensor, *, kind: LabelLoss = "cross_entropy"
) -> Tensor:
    """Train confident samples on their pseudo-label (L_PL, Eq. (9)), mean over all samples.

    The mean runs over all samples, not over the confident ones, so that the term's weight grows with their share, as
    it does in the paper's sum.

    Args:
        prediction: Prediction features, (B, K); the gradient flows into them.
        label: Pseudo-labels y, (B,).
        confident: Weights V, (B,).
        kind: Cross-entropy, or one binary cross-entropy per class.
    """
    if kind == "binary_cross_entropy":
        target = F.one_hot(label, prediction.shape[1]).to(prediction.dtype)
        return F.binary_cross_entropy(prediction, target, weight=confident.unsqueeze(1))
    chosen = prediction.gather(1, label.unsqueeze(1)).squeeze(1)
    return -(confident * chosen.clamp_min(_SMALLEST).log()).mean()
