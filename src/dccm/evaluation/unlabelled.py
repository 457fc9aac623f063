"""What can be said of clusters without true labels: each measure is a number, and none of them is the truth."""

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats
from dccm.grouping.agreement import unit_rows

Clusters = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


def silhouettes(features: Floats, clusters: Clusters) -> Doubles | None:
    """How much nearer each image is to its own cluster than to the next one, from -1 to 1, (N,) (Rousseeuw, 1987).

    Args:
        features: Brought to unit length first, (N, D).
        clusters: (N,).

    Returns:
        None where there is nothing to compare: a single cluster, or one for each image.
    """
    from sklearn.metrics import silhouette_samples

    if not 2 <= len(np.unique(clusters)) < len(clusters):
        return None
    rows = unit_rows(np.nan_to_num(np.asarray(features, dtype=np.float32)))
    found: Doubles = np.asarray(silhouette_samples(rows, clusters), dtype=np.float64)
    return found


def beyond_chance(first: Clusters, second: Clusters, n_clusters: int) -> float:
    """Share of images with equal clusters, less what chance would give, over the most that is left (Cohen's kappa).

    0 by chance, and where all images are in one cluster, whose agreement says nothing; 1 if all are equal.
    """
    shares = [np.bincount(clusters, minlength=n_clusters) / len(clusters) for clusters in (first, second)]
    by_chance = float(shares[0] @ shares[1])
    return float(((first == second).mean() - by_chance) / (1 - by_chance)) if by_chance < 1 - 1e-12 else 0.0


def sureness_and_balance(probabilities: Floats) -> tuple[float, float]:
    """How sure predictions are, and how evenly they are spread over the clusters, from 0 to 1.

    Sureness is one less the mean entropy of a prediction, balance the entropy of the mean prediction, both over the
    logarithm of K. Sureness and balance less one is the mutual information of image and cluster, over the same.

    Args:
        probabilities: (N, K), K above one.
    """
    most = np.log(probabilities.shape[1])
    mean = probabilities.mean(axis=0, dtype=np.float64)
    return 1 - float(_entropy(probabilities.astype(np.float64)).mean()) / most, float(_entropy(mean)) / most


def _entropy(probabilities: Doubles) -> Doubles:
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1.0))
    entropy: Doubles = -(probabilities * logarithms).sum(axis=-1)
    return entropy


def by_cluster(values: npt.NDArray[np.floating], clusters: Clusters, n_clusters: int) -> list[float | None]:
    """The mean of each cluster; None for one without images."""
    sizes = np.bincount(clusters, minlength=n_clusters)
    sums = np.bincount(clusters, weights=values, minlength=n_clusters)
    return [float(total / size) if size else None for total, size in zip(sums, sizes)]


def found_again(clusters: Clusters, others: Clusters, n_clusters: int) -> list[float | None]:
    """Of each cluster, how far the other clustering has it too: images that both hold over images that one holds.

    Args:
        clusters: (N,).
        others: Another clustering of the same images; the most alike of its clusters counts (Hennig, 2007).
        n_clusters: K.
    """
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(clusters, others).astype(np.float64)
    either = table.sum(axis=1, keepdims=True) + table.sum(axis=0) - table
    best = dict(zip(np.unique(clusters).tolist(), (table / either).max(axis=1).tolist()))
    return [best.get(number) for number in range(n_clusters)]
