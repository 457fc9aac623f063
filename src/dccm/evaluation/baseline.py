"""A simple method to compare with."""

from typing import Any

from dccm.data.images import ImageSet
from dccm.evaluation.metrics import scores


def kmeans_on_pixels(found: ImageSet, n_clusters: int, seed: int) -> dict[str, Any]:
    """What k-means makes of the same pixels; name and scores."""
    from sklearn.cluster import KMeans

    pixels = found.images.reshape(len(found.images), -1) / 255
    labels = KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(pixels)
    return {"name": "k-means on pixels", "scores": scores(found.labels, labels)}  # type: ignore[arg-type]
