"""What the page shows of each cluster: central, surest and doubtful images, and which clusters are near."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dccm.grouping.spread import Spread, gap
from dccm.report.gathered import RunFiles
from dccm.report.groups import Group
from dccm.report.pictures import Pictures, Thumbnail
from dccm.runs.members import CENTRAL, DOUBTFUL, SUREST

_NEAR = 2
"""Clusters that a card names as near, at most."""
_FAR = 4.0
"""Gap from which clusters are no longer near."""
_TRIED, _PAIRS, _OF_PAIR = 24, 6, 3
"""Pairs of clusters that are looked at, those that are shown, and images of each cluster."""
_IN_A_ROW = 8
Rows = NDArray[np.int64]


class Row(NamedTuple):
    """Images of a cluster under one heading."""

    title: str
    kind: str
    thumbnails: list[Thumbnail]


class Card(NamedTuple):
    """What the page says about one cluster."""

    group: Group
    size: int
    share: float
    mean_confidence: float
    rows: list[Row]
    near: list[Group]
    unmoved: float
    """Share of its images that keep their cluster when they are perturbed; not a number if nobody measured that."""

    @property
    def picture(self) -> str:
        """The image that stands for it; empty if none is kept."""
        return next((thumbnail.uri for row in self.rows for thumbnail in row.thumbnails), "")


class Pair(NamedTuple):
    """Two clusters that lie near each other."""

    groups: tuple[Group, Group]
    gap: float
    """Between their means, over both their deviations along that line: below 2 nothing parts them."""
    pictures: tuple[list[Thumbnail], list[Thumbnail]]


def sizes(run: RunFiles) -> list[int]:
    """Images of each cluster."""
    return [int(size) for size in np.bincount(run.assignments.clusters, minlength=len(run.groups))]


def cards(run: RunFiles, pictures: Pictures, spread: Spread | None) -> list[Card]:
    """One card per cluster, the largest first; empty clusters have one too."""
    clusters, confidences = run.assignments.clusters, run.assignments.confidences
    sheets, apart = dict(_sheets(run, pictures, spread)), spread.apart() if spread else None
    made = []
    for place, size in enumerate(sizes(run)):
        known = confidences[(clusters == place) & np.isfinite(confidences)]
        near = np.argsort(apart[place])[:_NEAR].tolist() if apart is not None else []
        made.append(
            Card(
                run.groups[place],
                size,
                size / len(clusters),
                float(known.mean()) if len(known) else math.nan,
                sheets.get(place, []),
                [run.groups[other] for other in near if apart is not None and np.isfinite(apart[place, other])],
                _unmoved(run, place),
            )
        )
    return sorted(made, key=lambda card: -card.size)


def _unmoved(run: RunFiles, place: int) -> float:
    """Of a cluster as the run found it; of corrected ones nothing is known."""
    known = run.judgement.unmoved_of if run.judgement and not run.changes else []
    value = known[place] if place < len(known) else None
    return math.nan if value is None else value


def _sheets(run: RunFiles, pictures: Pictures, spread: Spread | None) -> Iterator[tuple[int, list[Row]]]:
    """The images of each cluster that are kept, in rows."""
    kept = pictures.rows[~run.assignments.outliers[pictures.rows]]  # Those have a place of their own.
    clusters = run.assignments.clusters
    for place in np.unique(clusters[kept]):
        rows = kept[clusters[kept] == place]
        confidences = np.nan_to_num(run.assignments.confidences[clusters == place], nan=0.0)
        far = None
        if spread is not None and run.embedding is not None:
            far = np.linalg.norm(run.embedding[rows] - spread.means[place], axis=1)
        yield int(place), _rows(run, pictures, rows, confidences, far)


def _rows(
    run: RunFiles, pictures: Pictures, rows: Rows, confidences: NDArray[np.floating], far: NDArray[np.floating] | None
) -> list[Row]:
    """The rows of a card.

    Args:
        run: The run.
        pictures: Its images.
        rows: Of the kept images of a cluster.
        confidences: Of all images of it.
        far: Of the kept ones from its mean; None: nobody knows.
    """
    sure = np.nan_to_num(run.assignments.confidences[rows], nan=0.0)
    graded = len(np.unique(confidences)) > 1
    small = len(confidences) <= CENTRAL + SUREST  # All of them can be shown.
    central = [] if far is None or small else np.argsort(far, kind="stable")[:CENTRAL].tolist()
    doubted: list[int] = []
    if not small and (graded or far is not None):
        below = sure < np.median(confidences) if graded else np.asarray(far) > np.median(np.asarray(far))
        order = np.lexsort((np.zeros(len(rows)) if far is None else -far, sure))
        doubted = [place for place in order.tolist() if below[place] and place not in central][:DOUBTFUL]
    taken = {*central, *doubted}
    surest = [place for place in np.argsort(-sure, kind="stable").tolist() if place not in taken]
    found = [
        ("Central", "central", central),
        ("Surest", "surest", surest[:_IN_A_ROW] if taken else surest),
        ("Most in doubt", "doubtful", doubted),
    ]
    return [
        Row(title, kind, [pictures.thumbnail(int(rows[place])) for place in places])
        for title, kind, places in found
        if places
    ]


def near_pairs(run: RunFiles, made: list[Card], spread: Spread | None) -> list[Pair]:
    """The pairs of clusters that are parted least, among those whose means lie nearest."""
    if spread is None or run.embedding is None or len(run.groups) < 3:
        return []
    apart = spread.apart()
    apart[np.tril_indices(len(apart))] = np.inf
    shown = {card.group: [thumbnail for row in card.rows for thumbnail in row.thumbnails][:_OF_PAIR] for card in made}
    pairs = []
    for place in np.argsort(apart, axis=None)[:_TRIED]:
        one, other = (int(number) for number in np.unravel_index(place, apart.shape))
        if np.isfinite(apart[one, other]):
            groups = run.groups[one], run.groups[other]
            found = gap(run.embedding, run.assignments.clusters, spread, one, other)
            pairs.append(Pair(groups, found, (shown[groups[0]], shown[groups[1]])))
    return sorted((pair for pair in pairs if pair.gap < _FAR), key=lambda pair: pair.gap)[:_PAIRS]
