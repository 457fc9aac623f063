"""A simple method to compare with."""

from dataclasses import dataclass

from dccm.data.images import ImageSet


@dataclass(frozen=True)
class Baseline:
    """What a simple method makes of the same images."""

    name: str
    scores: dict[str, float]
    """Against true labels."""


def kmeans_on_pixels(image_set: ImageSet, n_clusters: int, seed: int) -> Baseline:
    """What k-means makes of the same pixels."""
    from sklearn.cluster import KMeans

    from dccm.evaluation.metrics import scores

    pixels = image_set.images.reshape(len(image_set.images), -1) / 255
    clusters = KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(pixels)
    return Baseline("k-means on pixels", scores(image_set.labels, clusters))  # type: ignore[arg-type]
