"""Centres from which k-means ends well: many small clusters, merged.

Random starts of k-means often end with two clusters joined and a third one split, most often where clusters are of
unequal size: a large cluster gets several of the first centres, small ones get none. Small clusters that are merged by
Ward's linkage know how much they hold. docs/lab/uneven_clusters.md has what that gives.
"""

import numpy as np
import numpy.typing as npt

from dccm.grouping.hierarchy import Clusters, cut, join_clusters

Points = npt.NDArray[np.float32]

_SMALL_PER_CLUSTER = 5
"""Small clusters for each that is wanted."""
_STARTS = 5
"""Times that small clusters are found anew; the centres with the smallest distances are kept."""
_SAMPLE = 10_000
"""Points that are looked at, at most."""


def merged_centres(points: Points, n_clusters: int, seed: int) -> Points:
    """Centres to begin k-means with, (K, D).

    Args:
        points: (N, D), at least as many as clusters.
        n_clusters: K.
        seed: Decides the sample and the first centres of the small clusters.
    """
    from sklearn.cluster import KMeans

    rows = np.random.default_rng(seed).permutation(len(points))[:_SAMPLE]
    sample = points[np.sort(rows)]
    starts = (_merged(sample, n_clusters, _STARTS * seed + number) for number in range(_STARTS))
    ends = (KMeans(n_clusters, init=start, n_init=1).fit(sample) for start in starts)
    centres: Points = min(ends, key=lambda end: float(end.inertia_)).cluster_centers_
    return centres


def _merged(points: Points, n_clusters: int, seed: int) -> Points:
    """Centres of small clusters that were merged until K are left, (K, D)."""
    from sklearn.cluster import KMeans

    small = max(n_clusters, min(_SMALL_PER_CLUSTER * n_clusters, len(points) // 2))
    labels = KMeans(small, n_init=1, random_state=seed).fit(points).labels_
    groups = np.unique(labels, return_inverse=True)[1].astype(np.int64)  # Copies leave some of them empty.
    merges = join_clusters(Clusters(points, groups, "ward"), lambda _: None)
    merged = Clusters(points, cut(merges, n_clusters)[groups], "ward").centres
    return _filled(merged, points, n_clusters, seed)


def _filled(centres: Points, points: Points, n_clusters: int, seed: int) -> Points:
    """Centres, and random points in place of those that are missing, where most points are copies of each other."""
    drawn = np.random.default_rng(seed).choice(len(points), n_clusters - len(centres), replace=False)
    return np.concatenate([centres, points[drawn]])
