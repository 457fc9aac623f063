"""How well clusters fit true classes: NMI, ARI, ACC and BCubed, all from the contingency table."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from dccm.errors import require

Labels = npt.ArrayLike


class BCubed(NamedTuple):
    """Of an average sample: how pure its cluster is, and how much of its class the cluster holds."""

    precision: float
    recall: float


def nmi(true: Labels, predicted: Labels) -> float:
    """Normalised mutual information (Eq. (16)), over the geometric mean of both entropies."""
    true, predicted = _pair(true, predicted)
    return float(normalized_mutual_info_score(true, predicted, average_method="geometric"))


def ari(true: Labels, predicted: Labels) -> float:
    """Adjusted Rand index (Eq. (18))."""
    true, predicted = _pair(true, predicted)
    return float(adjusted_rand_score(true, predicted))


def accuracy(true: Labels, predicted: Labels) -> float:
    """Share of samples in the right class under the best one-to-one map of clusters to classes (ACC, Eq. (19))."""
    true, predicted = _pair(true, predicted)
    table = contingency_matrix(true, predicted)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / len(true))


def balanced_accuracy(true: Labels, predicted: Labels) -> float:
    """Mean over the classes of the share that is right, under the one-to-one map of clusters that is best for it."""
    true, predicted = _pair(true, predicted)
    table = contingency_matrix(true, predicted)
    shares = table / table.sum(axis=1, keepdims=True)
    rows, columns = linear_sum_assignment(shares, maximize=True)
    return float(shares[rows, columns].sum() / len(shares))


def bcubed(true: Labels, predicted: Labels) -> BCubed:
    """BCubed precision and recall of a partition (Amigo et al., 2009)."""
    true, predicted = _pair(true, predicted)
    table = contingency_matrix(true, predicted).astype(np.float64)
    squared, count = table**2, len(true)
    precision = (squared.sum(axis=0) / table.sum(axis=0)).sum() / count
    recall = (squared.sum(axis=1) / table.sum(axis=1)).sum() / count
    return BCubed(float(precision), float(recall))


def graph_bcubed(true: Labels, graph: npt.ArrayLike) -> BCubed:
    """BCubed precision and recall of a pseudo-graph (Fig. 5): each sample's linked neighbours stand for its cluster.

    Args:
        true: True classes, (B,).
        graph: Zeros and ones, (B, B); a sample is always linked to itself.
    """
    classes = np.asarray(true)
    links = np.asarray(graph) > 0
    require(
        links.shape == (len(classes), len(classes)),
        f"graph must be ({len(classes)}, {len(classes)}) for {len(classes)} labels, got {links.shape}.",
    )
    links = links | np.eye(len(classes), dtype=bool)
    same = classes[:, None] == classes[None, :]
    right = (links & same).sum(axis=1)
    return BCubed(float((right / links.sum(axis=1)).mean()), float((right / same.sum(axis=1)).mean()))


def scores(true: Labels, predicted: Labels) -> dict[str, float]:
    """All scores of a partition by name."""
    cubed = bcubed(true, predicted)
    return {
        "acc": accuracy(true, predicted),
        "balanced_acc": balanced_accuracy(true, predicted),
        "nmi": nmi(true, predicted),
        "ari": ari(true, predicted),
        "bcubed_precision": cubed.precision,
        "bcubed_recall": cubed.recall,
    }


def _pair(true: Labels, predicted: Labels) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(true), np.asarray(predicted)
    require(
        first.ndim == second.ndim == 1 and len(first) == len(second) > 0,
        f"labels must be two lists of the same length, got shapes {first.shape} and {second.shape}.",
    )
    return first, second
