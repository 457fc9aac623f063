"""Compare the clusters of two runs of the same images."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from dccm.errors import require
from dccm.evaluation.labels import read_labels
from dccm.evaluation.metrics import scores
from dccm.runs.contents import Assignments
from dccm.runs.directory import RunDirectory


class Match(NamedTuple):
    """A cluster of the first run, and that of the second which shares most images with it, one to one."""

    first: int
    second: int | None
    """None: the second run has fewer clusters."""
    images: int
    shared: int


class Moved(NamedTuple):
    """An image that is in another cluster than its match."""

    path: str
    first: int
    second: int


class Compared(NamedTuple):
    """How far two runs agree."""

    images: int
    """That both have."""
    ari: float
    nmi: float
    matches: list[Match]
    moved: list[Moved]
    scores: list[dict[str, float]]
    """Of both runs against true labels; empty without labels."""


def compare(first: str | Path, second: str | Path, labels: str | Path | None = None) -> Compared:
    """How far two runs agree, on the images that both have.

    Args:
        first: Run directory, or output folder of `predict`.
        second: Another one.
        labels: As for `evaluate`; None: none are known.
    """
    one, other = (RunDirectory(run).read_assignments() for run in (first, second))
    places, names = common_rows(one, other)
    require(bool(names), f"{first} and {second} have no image in common. Compare runs of the same images.")
    clusters = one.clusters[places[0]], other.clusters[places[1]]
    matches = _matches(*clusters)
    known: list[dict[str, float]] = []
    if labels is not None:
        true = read_labels(Path(labels), names, RunDirectory(first).source_folder())
        known = [scores(true, found) for found in clusters]
    ari, nmi = adjusted_rand_score(*clusters), normalized_mutual_info_score(*clusters)
    return Compared(len(names), float(ari), float(nmi), matches, _moved(names, *clusters, matches), known)


def common_rows(one: Assignments, other: Assignments) -> tuple[tuple[list[int], list[int]], list[str]]:
    """Rows in both of the images that both have, and their names."""
    rows = {name: row for row, name in enumerate(other.paths)}
    names = [(row, rows[name], name) for row, name in enumerate(one.paths) if name in rows]
    return ([row for row, _, _ in names], [row for _, row, _ in names]), [name for *_, name in names]


def _matches(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> list[Match]:
    """The one-to-one matching of clusters that shares most images."""
    left, right = np.unique(first), np.unique(second)
    table = contingency_matrix(first, second)
    best = dict(zip(*linear_sum_assignment(table, maximize=True)))
    sizes = table.sum(axis=1)
    return [
        Match(int(cluster), int(right[best[row]]), int(sizes[row]), int(table[row, best[row]]))
        if row in best
        else Match(int(cluster), None, int(sizes[row]), 0)
        for row, cluster in enumerate(left)
    ]


def _moved(names: list[str], first: npt.NDArray[Any], second: npt.NDArray[Any], matches: list[Match]) -> list[Moved]:
    expected = {match.first: match.second for match in matches}
    rows = zip(names, first.tolist(), second.tolist())
    return [Moved(name, one, other) for name, one, other in rows if expected[one] != other]
