"""Graph-regularised non-negative matrix factorisation (Cai et al., IJCAI 2009; TPAMI 33(8), 2011).

Images are sums of K non-negative parts. Neighbouring images should use the parts alike, so that the factorisation
follows the shape of the data. k-means of the amounts gives the clusters.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from dccm.arrays import ImageShape
from dccm.config import Count, NotNegative, Section
from dccm.data.loader import Loader
from dccm.errors import require
from dccm.grouping.neighbours import ClusterMemory, Scaling, nearest
from dccm.methods.base import DirectMethod
from dccm.training.progress import OnProgress, Stage

Floats = npt.NDArray[np.float32]

_TINY = np.float32(1e-9)


@dataclass(frozen=True, kw_only=True)
class NMFConfig(Section):
    """Settings of the factorisation; the defaults are those of the 2011 paper."""

    graph_weight: NotNegative = 100.0
    """Weight of the graph (lambda); 0: plain NMF (Lee and Seung, 1999)."""
    neighbours: Count = 5
    """Links of an image to its nearest others (p)."""
    iterations: Count = 200
    """Updates of parts and amounts."""
    components: Count = 64
    """Principal components that stand for the pixels."""
    scaling: Scaling = "none"
    """Pixels as they come, or each image of unit length."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.scaling != "centred",
            "scaling must be 'none' or 'unit' for nmf, got 'centred': parts cannot be below zero. Take 'unit'.",
        )


class NMFMethod(DirectMethod[NMFConfig]):
    """Find parts, and how much of each is in every image."""

    year = 2009
    citation = "Cai et al., Locality Preserving Nonnegative Matrix Factorization, IJCAI 2009"
    learns = "non-negative parts of pixels"
    cost = "seconds to minutes"
    no_vectors = "adds up parts that are never negative, as numbers of a vector may be"
    config_type = NMFConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: NMFConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.memory = ClusterMemory(shape, n_clusters, config.components, config.scaling)

    def fit(self, loader: Loader, on_progress: OnProgress) -> None:
        """Link, factorise, divide."""
        from sklearn.cluster import KMeans

        on_progress(Stage("principal components", 0.0))
        points = self.memory.look(loader)
        count = min(self.config.neighbours, len(points) - 1)
        places, _ = nearest(points, count, lambda share: on_progress(Stage("neighbours", share)))
        rows = Reduced(points.cpu().numpy(), self.memory.axes.cpu().numpy())
        amounts = self._amounts(rows, link(places.cpu().numpy()), loader.seed, on_progress)
        clusters = min(self.n_clusters, len(points))
        found = KMeans(clusters, n_init=10, random_state=loader.seed).fit_predict(amounts)
        self.memory.keep(torch.from_numpy(found))

    def _amounts(self, rows: "Reduced", links: sparse.csr_array, seed: int, on_progress: OnProgress) -> Floats:
        """Parts and amounts in turns, from a random start; the amounts, (N, K)."""
        random = np.random.default_rng(seed)
        parts = random.random((len(rows.axes), self.n_clusters), dtype=np.float32)
        amounts = random.random((len(rows.points), self.n_clusters), dtype=np.float32)
        for step in range(self.config.iterations):
            if step % 20 == 0:
                on_progress(Stage("factorisation", step / self.config.iterations))
            parts, amounts = unit_parts(new_parts(rows, parts, amounts), amounts)
            amounts = new_amounts(rows, parts, amounts, links, self.config.graph_weight)
        return amounts


class Reduced(NamedTuple):
    """The pixels X as `points @ axes.T`: products with X cost a fraction."""

    points: Floats
    """(N, components)."""
    axes: Floats
    """(D, components)."""


def link(places: npt.NDArray[np.int64]) -> sparse.csr_array:
    """W: 1 for pairs of which one is among the nearest of the other, else 0, (N, N)."""
    count, length = places.shape
    rows = np.repeat(np.arange(count), length)
    links = sparse.csr_array((np.ones(places.size, np.float32), (rows, places.ravel())), shape=(count, count))
    return links.maximum(links.T)


def new_parts(rows: Reduced, parts: Floats, amounts: Floats) -> Floats:
    """U times (X'V) / (U V'V), with X of shape (N, D)."""
    wanted = rows.axes @ (rows.points.T @ amounts)
    return parts * _factor(wanted, parts @ (amounts.T @ amounts))


def new_amounts(rows: Reduced, parts: Floats, amounts: Floats, links: sparse.csr_array, graph_weight: float) -> Floats:
    """V times (X U + lambda W V) / (V U'U + lambda D V), where D counts the links of each image."""
    weight, degrees = np.float32(graph_weight), links.sum(axis=1)[:, np.newaxis]
    wanted = rows.points @ (rows.axes.T @ parts) + weight * (links @ amounts)
    return amounts * _factor(wanted, amounts @ (parts.T @ parts) + weight * degrees * amounts)


def unit_parts(parts: Floats, amounts: Floats) -> tuple[Floats, Floats]:
    """Parts of length 1, and amounts that make up for it; else the graph's term falls by mere shrinking."""
    lengths = np.sqrt((parts**2).sum(axis=0)).clip(min=_TINY)
    return parts / lengths, amounts * lengths


def _factor(wanted: Floats, present: Floats) -> Floats:
    """Factor of a multiplicative update; what principal components leave out can push `wanted` below zero."""
    return np.asarray(wanted.clip(min=0) / present.clip(min=_TINY), dtype=np.float32)
