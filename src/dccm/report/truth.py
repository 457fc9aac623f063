"""Classes against clusters, where true labels are known: the matrix, and the images on which both disagree."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dccm.evaluation.confusion import confusion, disagreements
from dccm.report.gathered import RunFiles
from dccm.report.groups import Group
from dccm.report.pictures import Pictures, Thumbnail

_MOST = 30
"""Classes and clusters of a matrix that can be read."""
_SHOWN, _MIXED = 24, 10


class Line(NamedTuple):
    """A class in the matrix."""

    name: str
    images: int
    counts: list[int]
    shares: list[float]
    """Of the class's images, in each cluster."""


class Wrong(NamedTuple):
    """An image whose class is not that of its cluster."""

    thumbnail: Thumbnail
    group: Group
    label: str


class Mixed(NamedTuple):
    """A class and a cluster that should not be together, and are."""

    name: str
    group: Group
    images: int


class Truth(NamedTuple):
    """What true labels say of a run."""

    right: float
    """Share of the images in the cluster of their class."""
    wrong: int
    columns: list[Group]
    lines: list[Line]
    """Empty: there are too many classes for a matrix."""
    mixed: list[Mixed]
    shown: list[Wrong]


def truth(run: RunFiles, pictures: Pictures) -> Truth | None:
    """Everything that labels say; None without labels."""
    if run.labels is None:
        return None
    labels, clusters = run.labels, run.assignments.clusters
    found = confusion(labels, clusters)
    wrong = disagreements(labels, clusters, run.assignments.confidences)
    counts, groups = found.counts, [run.groups[cluster] for cluster in found.clusters]
    readable = max(counts.shape) <= _MOST
    return Truth(
        1 - len(wrong) / len(labels),
        len(wrong),
        groups,
        [_line(name, row) for name, row in zip(found.classes, counts)] if readable else [],
        _mixed(counts, found.classes, groups, found.matched),
        _wrong(run, pictures, wrong, labels),
    )


def _line(name: str, counts: NDArray[np.int64]) -> Line:
    total = int(counts.sum())
    return Line(name, total, counts.tolist(), (counts / max(total, 1)).tolist())


def _mixed(counts: NDArray[np.int64], classes: list[str], groups: list[Group], matched: int) -> list[Mixed]:
    """The largest counts off the diagonal."""
    off = counts.copy()
    off[np.arange(matched), np.arange(matched)] = 0
    largest = np.argsort(-off, axis=None, kind="stable")[:_MIXED]
    places = [np.unravel_index(place, off.shape) for place in largest]
    return [Mixed(classes[row], groups[column], int(off[row, column])) for row, column in places if off[row, column]]


def _wrong(run: RunFiles, pictures: Pictures, rows: NDArray[np.int64], labels: NDArray[Any]) -> list[Wrong]:
    """Those of which a picture is kept, the surest first."""
    kept = [int(row) for row in rows[np.isin(rows, pictures.rows)][:_SHOWN]]
    clusters = run.assignments.clusters
    return [Wrong(pictures.thumbnail(row), run.groups[clusters[row]], str(labels[row])) for row in kept]
