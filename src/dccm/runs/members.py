"""Which images of a run are kept as small pictures: the report shows no others."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats
from dccm.data.images import Duplicate
from dccm.grouping.spread import distances, spread_of
from dccm.runs.contents import Assignments

CENTRAL, SUREST, DOUBTFUL = 4, 12, 8
"""Images of each cluster: nearest to its mean feature, of the highest confidence, and of the lowest."""
OUTLIERS = 24
PAIRS, DISAGREEMENTS = 12, 24
"""Duplicates of a kind, and images on which clusters and true classes disagree."""
MAPPED = 600
"""Images of the map at most."""
Rows = npt.NDArray[np.int64]


def shown_rows(assignments: Assignments, features: Floats | None, also: Sequence[int] = ()) -> Rows:
    """Rows of the images that the report shows, each once.

    Args:
        assignments: Of all images.
        features: Of the same images, (N, D); None: none were kept.
        also: Rows of others that it shows.
    """
    far = _far(features, assignments.clusters)
    found: dict[int, None] = {}
    for cluster in np.unique(assignments.clusters):
        members = np.flatnonzero(assignments.clusters == cluster)
        found |= dict.fromkeys(_of_cluster(members, assignments.confidences, far))
    found |= dict.fromkeys(np.flatnonzero(assignments.outliers)[:OUTLIERS].tolist())
    found |= dict.fromkeys(also)
    return np.array(list(found), dtype=np.int64)


def _far(features: Floats | None, clusters: Rows) -> npt.NDArray[np.float64] | None:
    """How far each image is from the mean of its cluster; None where there is no feature."""
    if features is None:
        return None
    return distances(features, clusters, spread_of(features, clusters, int(clusters.max()) + 1).means)


def _of_cluster(
    members: Rows, confidences: npt.NDArray[np.floating], far: npt.NDArray[np.float64] | None
) -> Iterator[int]:
    sure = members[np.argsort(-confidences[members], kind="stable")]
    if far is not None:
        yield from members[np.argsort(far[members], kind="stable")[:CENTRAL]].tolist()
    yield from sure[:SUREST].tolist()
    if far is not None:  # Where all are equally sure, those far out are in doubt.
        sure = members[np.lexsort((far[members], -confidences[members]))]
    yield from sure[::-1][:DOUBTFUL].tolist()


def mapped_rows(count: int) -> Rows:
    """Rows of the images on the map: all, or as many drawn at random, rising; the same ones every time."""
    return np.sort(np.random.default_rng(0).permutation(count)[:MAPPED])


def rows_of_pairs(names: Sequence[str], pairs: Sequence[Duplicate]) -> list[int]:
    """Rows of all images that some pairs name."""
    wanted = {name for pair in pairs for name in pair}
    return [row for row, name in enumerate(names) if name in wanted] if wanted else []
