"""All that is mined from the clean images of a large batch, before the network learns from it."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.correlations.pseudo_graph import pseudo_graph, similarity
from dccm.correlations.pseudo_label import confident, pseudo_label


class Targets(NamedTuple):
    """Supervision that images give each other; no gradient flows through any of it."""

    similarity: Tensor
    """S, (B, B)."""
    graph: Tensor
    """W, Eq. (2), (B, B)."""
    label: Tensor
    """y, Eq. (7), (B,)."""
    confident: Tensor
    """V, Eq. (8), (B,)."""

    def rows(self, index: Tensor) -> "Targets":
        """The part of a large batch's targets that belongs to a mini-batch of it."""
        return Targets(
            self.similarity.index_select(0, index).index_select(1, index),
            self.graph.index_select(0, index).index_select(1, index),
            self.label.index_select(0, index),
            self.confident.index_select(0, index),
        )


def told(prediction: Tensor, label: Tensor) -> Tensor:
    """Predictions of which some are what people said: then W links and parts these images, y and V are theirs.

    Args:
        prediction: What the network says, (B, K).
        label: The cluster that people put each image into, (B,); -1 where nobody said.
    """
    known = F.one_hot(label.clamp_min(0), prediction.shape[1]).to(prediction.dtype)
    return torch.where(label.unsqueeze(1) >= 0, known, prediction)


def mine(prediction: Tensor, *, graph_threshold: float, label_threshold: float) -> Targets:
    """Pseudo-graph and pseudo-labels of a batch of predictions (Eqs. (2), (7) and (8))."""
    pairs = similarity(prediction.detach())
    label, probability = pseudo_label(prediction)
    return Targets(pairs, pseudo_graph(pairs, graph_threshold), label, confident(probability, label_threshold))
