"""How true confidences are, against true labels: calibration error, reliability, and what leaving out the unsure gains.

An image counts as right if its class is that of its cluster under the best one-to-one map (as for ACC).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

Confidences = npt.NDArray[np.floating[Any]]
Right = npt.NDArray[np.bool_]

BINS = 15
"""Of equal width, as usual (Guo et al., ICML 2017)."""
_SUREST = 0.8


class Bin(NamedTuple):
    """Images of about the same confidence."""

    confidence: float
    """Their mean."""
    right: float
    """Share of them in the right cluster."""
    images: int


def right_ones(true: npt.ArrayLike, clusters: npt.ArrayLike) -> Right:
    """Whether each image is in the right cluster, (N,)."""
    classes, class_numbers = np.unique(np.asarray(true), return_inverse=True)
    found, cluster_numbers = np.unique(np.asarray(clusters), return_inverse=True)
    best = np.full(len(found), len(classes))  # No class, where there are more clusters than classes.
    rows, columns = linear_sum_assignment(contingency_matrix(class_numbers, cluster_numbers), maximize=True)
    best[columns] = rows
    fits: Right = best[cluster_numbers] == class_numbers
    return fits


def reliability(confidences: Confidences, right: Right) -> list[Bin]:
    """The bins that hold images, by rising confidence."""
    numbers = np.minimum((np.asarray(confidences) * BINS).astype(int), BINS - 1)
    groups = [numbers == number for number in range(BINS)]
    return [
        Bin(float(confidences[group].mean(dtype=np.float64)), float(right[group].mean()), int(group.sum()))
        for group in groups
        if group.any()
    ]


def calibration_error(confidences: Confidences, right: Right) -> float:
    """Mean distance of confidence and share of right images, over bins, weighted by their images (ECE)."""
    bins = reliability(confidences, right)
    return sum(abs(part.confidence - part.right) * part.images for part in bins) / len(right)


def risk_coverage(confidences: Confidences, right: Right) -> npt.NDArray[np.float64]:
    """Share of wrong images among the n surest ones, for n = 1 to N, (N,)."""
    wrong = ~right[np.argsort(-confidences, kind="stable")]
    risk: npt.NDArray[np.float64] = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    return risk


def confidence_scores(
    true: npt.ArrayLike, clusters: npt.NDArray[np.int64], confidences: Confidences, rejected: Right
) -> dict[str, float]:
    """What labels say of confidences and of the reject class, by name; nothing where there are no confidences.

    `acc` elsewhere is always of all images, by their best cluster. The accuracy of a part of them has the map of
    clusters to classes that is best for all.
    """
    if not np.isfinite(confidences).all():
        return {}
    right = right_ones(true, clusters)
    surest = max(1, round(_SUREST * len(right)))
    found = {
        "calibration_error": calibration_error(confidences, right),
        "acc_surest_80": float(1 - risk_coverage(confidences, right)[surest - 1]),
    }
    if rejected.any():
        kept = right[~rejected]
        found |= {"coverage": len(kept) / len(right), "acc_kept": float(kept.mean()) if len(kept) else 0.0}
    return found
