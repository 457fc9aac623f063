"""Which classes fell into which clusters, and on which images both disagree."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

Rows = npt.NDArray[np.int64]


class Confusion(NamedTuple):
    """Classes and clusters under the one-to-one matching that shares most images (that of ACC, Eq. (19))."""

    classes: list[str]
    """Those with a cluster first, in the order of their clusters."""
    clusters: list[int]
    """Each beside its class; those without one come last."""
    counts: Rows
    """Images of each class in each cluster, (classes, clusters)."""
    matched: int
    """So many of the first classes and clusters belong together."""


def confusion(labels: npt.NDArray[Any], clusters: Rows) -> Confusion:
    """The confusion matrix of a run, its rows and columns in the order of the best matching."""
    table = contingency_matrix(labels, clusters)
    classes, numbers = np.unique(labels), np.unique(clusters)
    rows, columns = linear_sum_assignment(table, maximize=True)
    pairs = sorted(zip(columns.tolist(), rows.tolist()))
    in_rows = _completed([row for _, row in pairs], len(classes))
    in_columns = _completed([column for column, _ in pairs], len(numbers))
    return Confusion(
        [str(classes[row]) for row in in_rows],
        [int(numbers[column]) for column in in_columns],
        table[np.ix_(in_rows, in_columns)].astype(np.int64),
        len(pairs),
    )


def _completed(some: list[int], count: int) -> list[int]:
    return [*some, *(number for number in range(count) if number not in set(some))]


def disagreements(labels: npt.NDArray[Any], clusters: Rows, confidences: npt.NDArray[np.floating]) -> Rows:
    """Rows of the images whose class is not that of their cluster, the surest first."""
    found = confusion(labels, clusters)
    class_of = dict(zip(found.clusters[: found.matched], found.classes))
    expected = np.array([class_of.get(int(cluster), "") for cluster in np.unique(clusters)])
    places = np.unique(clusters, return_inverse=True)[1]
    matched = np.isin(clusters, found.clusters[: found.matched])
    wrong = np.flatnonzero(~matched | (expected[places] != np.asarray(labels).astype(str)))
    known = np.nan_to_num(confidences[wrong], nan=0.0)
    ordered: Rows = wrong[np.argsort(-known, kind="stable")]
    return ordered
