"""Neighbours among images: pixels as rows, their principal components, the nearest others, the nearest stored one.

What methods without a network share. No step needs all pixels as floats, or all pairs of images, at once.
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.data.loader import Loader

Scaling = Literal["none", "unit", "centred"]
Shares = Callable[[float], None]
"""Called with the share of the work that is done."""

_EXTRA = 16
"""Axes that are carried along beyond those wanted."""
_PASSES = 4
"""Over the images, to find the axes."""
_BYTE_LEVELS, _HALF_LEVELS = 255, 2**24
"""Times that values become whole numbers: those of bytes, and those of vectors in half precision."""
_AT_ONCE = 2**24
"""Distances in memory at once: 64 MB."""


class Pixels(nn.Module):
    """Images as rows of pixels.

    Args:
        size: Values of an image.
        scaling: `none`: in [0, 1] as they come; `unit`: each image has length 1, so that overall brightness does not
            count; `centred`: the same after the mean image was subtracted.
    """

    def __init__(self, size: int, scaling: Scaling = "none") -> None:
        super().__init__()
        self.scaling = scaling
        self.mean: Tensor
        self.register_buffer("mean", torch.zeros(size))

    def fit(self, loader: Loader) -> None:
        """Find the mean image, if it is needed."""
        if self.scaling == "centred":
            total = sum(images.flatten(1).sum(dim=0, dtype=torch.float64) for images in loader.ordered())
            self.mean = (total / len(loader)).to(torch.float32)  # type: ignore[union-attr]

    def forward(self, images: Tensor) -> Tensor:
        """Rows, (B, D)."""
        rows = images.flatten(1)
        if self.scaling == "none":
            return rows
        return F.normalize(rows - self.mean)


def principal_axes(pixels: Pixels, loader: Loader, count: int) -> Tensor:
    """Directions in which the rows are largest, orthonormal, (D, count), by subspace iteration from a random start.

    Rows are not centred: distances do not ask for it, and products of rows with the axes give the rows back.
    """
    size = len(pixels.mean)
    start = torch.randn(size, min(count + _EXTRA, size), generator=torch.Generator().manual_seed(loader.seed))
    axes: Tensor = torch.linalg.qr(start.to(loader.device))[0]
    for _ in range(_PASSES):
        before, moments = axes, torch.zeros_like(axes)
        for images in loader.ordered():
            rows = pixels(images)
            moments += rows.T @ (rows @ before)
        axes = torch.linalg.qr(moments)[0]
    largest: Tensor = torch.linalg.eigh(before.T @ moments)[1].flip(1)[:, :count]
    return before @ largest


def nearest(points: Tensor, count: int, shares: Shares | None = None) -> tuple[Tensor, Tensor]:
    """The nearest others of each point, exactly, nearest first.

    Args:
        points: (N, D).
        count: How many; at most N - 1.
        shares: Called with the share of the work that is done.

    Returns:
        Their places and distances, (N, count) each.
    """
    # Room for the results comes first: between the large blocks they would break up the memory.
    places = torch.empty(len(points), count, dtype=torch.int64, device=points.device)
    distances = torch.empty(len(points), count, dtype=points.dtype, device=points.device)
    for start, block in _blocks(points, points):
        own = torch.arange(len(block), device=points.device)
        block[own, own + start] = torch.inf
        places[start : start + len(block)] = block.topk(count, largest=False).indices
        if shares is not None:
            shares((start + len(block)) / len(points))
    for rank in range(count):
        # Differences, not products: exact also for points that lie close together.
        distances[:, rank] = (points - points[places[:, rank]]).norm(dim=1)
    order = distances.argsort(dim=1, stable=True)
    return places.gather(1, order), distances.gather(1, order)


def nearest_stored(points: Tensor, stored: Tensor) -> Tensor:
    """Place of the nearest stored point of each point, (B,)."""
    return torch.cat([block.argmin(dim=1) for _, block in _blocks(points, stored)])


def _blocks(points: Tensor, others: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Squared distances to all others, less each point's own square, in blocks of points, each with its start."""
    squares = others.square().sum(dim=1)
    for rows in torch.arange(len(points)).split(max(1, _AT_ONCE // len(others))):
        start = int(rows[0])
        yield start, torch.addmm(squares, points[start : start + len(rows)], others.T, alpha=-2)


class ClusterMemory(nn.Module):
    """Clusters of the images that were clustered; a new image gets that of the nearest of them.

    Clustered images are known by a key of their bytes, so that each gets exactly its own cluster back; images with
    equal bytes are one image here.

    Args:
        shape: Shape of the images.
        n_clusters: K.
        components: Principal components in which distances are taken.
        scaling: Of the pixels.
    """

    def __init__(self, shape: ImageShape, n_clusters: int, components: int, scaling: Scaling) -> None:
        super().__init__()
        self.n_clusters = n_clusters
        self.levels = _HALF_LEVELS if shape.is_vector else _BYTE_LEVELS
        size = math.prod(shape)
        kept = min(components, size)
        self.pixels = Pixels(size, scaling)
        self.axes: Tensor
        self.factors: Tensor
        self.keys: Tensor
        self.points: Tensor
        self.clusters: Tensor
        self.register_buffer("axes", torch.zeros(size, kept))
        self.register_buffer("factors", torch.randint(-(2**62), 2**62, (size,)) * 2 + 1)
        self.register_buffer("keys", torch.zeros(0, dtype=torch.int64))
        self.register_buffer("points", torch.zeros(0, kept))
        self.register_buffer("clusters", torch.zeros(0, dtype=torch.int64))

    def look(self, loader: Loader) -> Tensor:
        """Look at all images: principal components of the distinct ones, (M, components)."""
        self.pixels.fit(loader)
        self.axes = principal_axes(self.pixels, loader, self.axes.shape[1])
        keys = torch.empty(len(loader), dtype=torch.int64, device=self.axes.device)
        points = torch.empty(len(loader), self.axes.shape[1], device=self.axes.device)
        done = 0
        for images in loader.ordered():
            rows = slice(done, done + len(images))
            keys[rows], points[rows], done = self._key(images), self._reduce(images), rows.stop
        self.keys, same = keys.unique(return_inverse=True)
        place = torch.arange(len(keys), device=keys.device)
        first = torch.full_like(self.keys, len(keys)).scatter_reduce(0, same, place, "amin")
        self.points = points[first]
        return self.points

    def keep(self, clusters: Tensor) -> None:
        """Keep the clusters of what `look` gave, (M,)."""
        self.clusters = clusters.to(self.points.device, torch.int64)

    def forward(self, images: Tensor) -> Tensor:
        """One for the cluster of each image, zero for the others, (B, K)."""
        if not len(self.clusters):  # Before anything was clustered.
            return images.new_full((len(images), self.n_clusters), 1 / self.n_clusters)
        keys = self._key(images)
        place = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        new = (self.keys[place] != keys).nonzero().squeeze(1)
        if len(new):
            place[new] = nearest_stored(self._reduce(images[new]), self.points)
        return F.one_hot(self.clusters[place], self.n_clusters).to(images.dtype)

    def _reduce(self, images: Tensor) -> Tensor:
        reduced: Tensor = self.pixels(images) @ self.axes
        return reduced

    def _key(self, images: Tensor) -> Tensor:
        """A number of 64 bits for each image; whole numbers times random odd factors, whose sum may overflow."""
        values = (images.flatten(1) * self.levels).round().to(torch.int64)
        return (values * self.factors).sum(dim=1)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: object) -> None:
        """Take any number of images: how many there are is known only when they have been seen."""
        for name in ("keys", "points", "clusters"):
            own, stored = getattr(self, name), state_dict.get(f"{prefix}{name}")
            if stored is not None and stored.shape[1:] == own.shape[1:]:
                setattr(self, name, own.new_zeros(stored.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)
