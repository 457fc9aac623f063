"""What methods that learn heads on the vectors of a pretrained encoder share."""

import math
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from dccm.arrays import Floats, ImageShape
from dccm.data.loader import Loader, equal_parts
from dccm.errors import require
from dccm.grouping.centres import merged_centres
from dccm.grouping.neighbours import nearest
from dccm.grouping.readout import KMeansReadout
from dccm.methods.per_image import PerImage
from dccm.networks.components import Components, LinearHeads
from dccm.networks.head import VectorHead
from dccm.training.collapse import Watched, cluster_information
from dccm.training.progress import OnProgress, Stage

Start = Literal["random", "kmeans"]
"""How a head begins: with random weights, or where k-means ends."""

_SAMPLE = 10_000
"""Points that k-means sees at most where it only begins a head."""
_STARTS = 10
"""Starts of k-means for all heads together, but at least one for each."""
_FOR_COMPONENTS = 10_000
"""Vectors whose principal components are taken: those of 60,000 take seconds, docs/lab/features.md compares them."""
_SURE = 0.5
"""Probability from which an image is counted as sure of its cluster."""


def require_vectors(method: str, shape: ImageShape) -> None:
    """Refuse pictures."""
    require(
        shape.is_vector,
        f"{method} needs the vectors of a pretrained encoder, got images of {shape.height} x {shape.width} x "
        f"{shape.channels}. Set encoder = 'efficientnet-lite0'.",
    )


class Neighbourhood(nn.Module):
    """Points of all images and the nearest others of each, in buffers, so that a resumed run draws the same pairs.

    Args:
        size: Length of a point.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.points = PerImage(size)
        self.places = PerImage(dtype=torch.int64)  # Of the neighbours, row after row: how many is known when N is.

    @torch.no_grad()
    def look(self, points: Floats, count: int, on_progress: OnProgress) -> None:
        """Find the nearest others of all points, exactly.

        Args:
            points: (N, C).
            count: Neighbours of each; fewer if there are no more.
            on_progress: Called as it gets on.
        """
        self.points.fill(torch.from_numpy(points))
        found, _ = nearest(
            self.points.rows, min(count, len(points) - 1), lambda share: on_progress(Stage("neighbours", share))
        )
        self.places.fill(found.flatten())

    def pairs(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Points of images, and each one's random neighbour, (B, C) both."""
        points, places = self.points.rows, self.places.rows.view(len(self.points.rows), -1)
        drawn = torch.randint(places.shape[1], index.shape, generator=generator, device=index.device)
        return points[index], points[places[index, drawn]]

    def forget(self) -> None:
        """Drop all points, when training is over."""
        self.points.forget()
        self.places.forget()


def neighbour_count(wanted: int, images: int, n_clusters: int) -> int:
    """At most so many neighbours that half of a cluster of mean size holds them: more would be of other clusters."""
    return max(1, min(wanted, images // (2 * n_clusters)))


def mini_batches(index: Tensor, size: int, fewest: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Images of a large batch in parts of about `size`, in random order: all once, or as often as `fewest` parts need.

    Another time an image comes with other neighbours. Without it a set of some hundred images would be over before its
    heads have learnt.
    """
    parts = equal_parts(len(index), size)
    for _ in range(math.ceil(fewest / parts)):
        order = torch.randperm(len(index), generator=generator, device=index.device)
        yield from index[order].tensor_split(parts)


def begin_heads(heads: LinearHeads, points: Floats, seed: int) -> None:
    """Each head where another start of k-means ends."""
    count, device = heads.weight.shape[2], heads.weight.device
    for head in range(len(heads.weight)):
        order = torch.randperm(len(points), generator=torch.Generator().manual_seed(seed * len(heads.weight) + head))
        readout = KMeansReadout(count, n_init=max(1, _STARTS // len(heads.weight)))
        readout.fit(points[order[:_SAMPLE].numpy()], seed + head)
        heads.begin(head, readout.centres.to(device), readout.scale.to(device))


def points_of(components: Components, loader: Loader) -> Floats:
    """Find the components of all images' vectors; the points that they become, (N, C)."""
    components.fit(loader)
    return loader.over_all(components)


def watched(prediction: Tensor) -> Watched:
    """What predictions, (B, K), say about the state of the clusters; images of one cluster count as linked."""
    prediction = prediction.detach()
    count, n_clusters = prediction.shape
    sizes = torch.bincount(prediction.argmax(dim=1), minlength=n_clusters)
    linked = (sizes * (sizes - 1)).sum() / max(1, count * (count - 1))
    sure = (prediction.amax(dim=1) > _SURE).sum()
    return Watched(sizes, sure, linked, cluster_information(prediction))


@torch.no_grad()
def begin_from_kmeans(head: VectorHead, loader: Loader, n_clusters: int) -> None:
    """Principal components of the vectors, and k-means among all of them."""
    mean, moments = torch.zeros_like(head.mean), head.mean.new_zeros(len(head.mean), len(head.mean))
    count = min(len(loader), _FOR_COMPONENTS)
    for images in loader.sampled(count):
        rows = head.vectors(head.conv(images))
        mean += rows.sum(dim=0) / count
        moments += rows.T @ rows / count
    head.look(mean, moments - torch.outer(mean, mean))
    features = loader.over_all(lambda images: head.feature(head.conv(images)))
    readout = KMeansReadout(n_clusters)
    readout.fit(features, loader.seed, merged_centres(features, n_clusters, loader.seed))
    centres = readout.centres.to(head.mean.device)
    own = torch.cdist(torch.from_numpy(features).to(centres), centres).argmin(dim=1)
    head.begin(centres, torch.bincount(own, minlength=n_clusters))
