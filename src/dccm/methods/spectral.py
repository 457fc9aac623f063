"""Spectral clustering with local scaling (Zelnik-Manor and Perona, NIPS 2004).

Images are linked to their nearest others, each with a scale of its own: the distance to its 7th neighbour. The leading
eigenvectors of the normalised affinity then have one direction for each group.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from dccm.arrays import ImageShape
from dccm.config import Count, Section
from dccm.data.loader import Loader
from dccm.errors import require
from dccm.grouping.neighbours import ClusterMemory, Scaling, nearest
from dccm.methods.base import DirectMethod
from dccm.training.progress import OnProgress, Stage

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SpectralConfig(Section):
    """Settings of spectral clustering."""

    scale_neighbour: Count = 7
    """Which neighbour's distance is an image's own scale sigma (the paper's K)."""
    neighbours: Count = 20
    """Links of an image to its nearest others; the paper has all pairs, which grow with the square of the images."""
    assignment: Literal["kmeans", "rotation"] = "rotation"
    """Groups of the eigenvectors: by k-means, or by the rotation that best aligns them with the axes."""
    components: Count = 64
    """Principal components of the pixels in which distances are taken."""
    scaling: Scaling = "none"
    """Pixels as they come, each image of unit length, or the same after the mean image was subtracted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.scale_neighbour <= self.neighbours,
            f"scale_neighbour must not exceed neighbours, {self.neighbours}, got {self.scale_neighbour}. "
            "Lower it, or raise neighbours.",
        )


class SpectralMethod(DirectMethod[SpectralConfig]):
    """Cut the graph of neighbouring images where its links are weakest."""

    year = 2004
    citation = "Zelnik-Manor and Perona, Self-Tuning Spectral Clustering, NIPS 2004"
    learns = "clusters of pixels"
    cost = "seconds to minutes"
    takes_vectors = True
    config_type = SpectralConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: SpectralConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.memory = ClusterMemory(shape, n_clusters, config.components, config.scaling)

    def fit(self, loader: Loader, on_progress: OnProgress) -> None:
        """Link, find the eigenvectors, divide."""
        on_progress(Stage("principal components", 0.0))
        points = self.memory.look(loader)
        if len(points) == 1:  # All images are the same, so there is nothing to link.
            self.memory.keep(torch.zeros(1, dtype=torch.int64))
            return
        count = min(self.config.neighbours, len(points) - 1)
        places, distances = nearest(points, count, lambda share: on_progress(Stage("neighbours", share)))
        on_progress(Stage("eigenvectors", 0.0))
        affinity = self_tuning_affinity(
            places.cpu().numpy(), distances.cpu().numpy().astype(np.float64), min(self.config.scale_neighbour, count)
        )
        vectors = leading_eigenvectors(affinity, min(self.n_clusters, len(points)), loader.seed)
        on_progress(Stage("assignment", 0.0))
        assign = by_kmeans if self.config.assignment == "kmeans" else by_rotation
        self.memory.keep(torch.from_numpy(assign(unit_rows(vectors), loader.seed)))
        on_progress(Stage("assignment", 1.0))


def self_tuning_affinity(places: npt.NDArray[np.int64], distances: Doubles, scale_neighbour: int) -> sparse.csr_array:
    """exp(-d(i, j)^2 / (sigma_i sigma_j)) for neighbours, else zero (Eq. (1) and Section 2.1).

    Args:
        places: Nearest others of each point, nearest first, (N, k).
        distances: Their distances, (N, k).
        scale_neighbour: sigma is the distance to this neighbour.
    """
    count, k = places.shape
    sigma = np.maximum(distances[:, scale_neighbour - 1], 1e-12)  # Copies of one image have distance 0.
    values = np.exp(-(distances**2) / (sigma[:, None] * sigma[places]))
    rows = np.repeat(np.arange(count), k)
    links = sparse.csr_array((values.ravel(), (rows, places.ravel())), shape=(count, count))
    return links.maximum(links.T)


def leading_eigenvectors(affinity: sparse.csr_array, count: int, seed: int) -> Doubles:
    """Of D^-1/2 A D^-1/2, those with the largest eigenvalues, (N, count); by Lanczos from a seeded start."""
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(affinity.sum(axis=1), 1e-300)))
    normalised = scale @ affinity @ scale
    size = affinity.shape[0]
    if size <= max(100, 5 * count):  # Lanczos wants far more rows than vectors.
        return np.linalg.eigh(normalised.toarray())[1][:, ::-1][:, :count]
    random = np.random.default_rng(seed)
    values, vectors = np.zeros(0), np.zeros((size, 0))
    while True:
        # Groups without a link between them share the eigenvalue 1, of which Lanczos may overlook copies. So what is
        # found is moved to the other end of the spectrum, and the search goes on until nothing larger turns up.
        more_values, more = _lanczos(normalised, vectors, count, random.uniform(-1, 1, size))
        complete = len(values) > 0 and more_values.max() <= values.min() + 1e-8
        if complete:
            return vectors
        values, vectors = np.append(values, more_values), np.hstack([vectors, more])
        largest = np.argsort(-values, kind="stable")[:count]
        values, vectors = values[largest], vectors[:, largest]


def _lanczos(matrix: sparse.csr_array, known: Doubles, count: int, start: Doubles) -> tuple[Doubles, Doubles]:
    """Largest eigenvalues and their vectors of a matrix whose known eigenvectors are moved down by 3."""
    rest = LinearOperator(matrix.shape, lambda x: matrix @ x - 3 * (known @ (known.T @ x)), dtype=np.float64)
    values, vectors = eigsh(rest, count, which="LA", v0=start, ncv=max(4 * count, 40))
    return values, vectors


def unit_rows(vectors: Doubles) -> Doubles:
    """Each row of length 1 (Ng, Jordan and Weiss, 2001)."""
    scaled: Doubles = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return scaled


def by_kmeans(rows: Doubles, seed: int) -> npt.NDArray[np.int64]:
    """k-means of the rows, from ten starts."""
    from sklearn.cluster import KMeans

    clusters: npt.NDArray[np.int64] = KMeans(rows.shape[1], n_init=10, random_state=seed).fit_predict(rows)
    return clusters


def by_rotation(rows: Doubles, seed: int) -> npt.NDArray[np.int64]:
    """Rotate until each row lies close to one axis; that axis is its group (Section 3 of the paper).

    The paper turns by gradient descent over angles. Here the best axis of each row and the best rotation towards them
    are found in turns, each exactly (Yu and Shi, ICCV 2003), until no row changes its axis.
    """
    rotation = spread_rows(rows, seed).T
    clusters = np.full(len(rows), -1)
    for _ in range(200):
        before, clusters = clusters, (rows @ rotation).argmax(axis=1)
        if np.array_equal(before, clusters):
            break
        left, _, right = np.linalg.svd(rows.T @ np.eye(rows.shape[1])[clusters])
        rotation = left @ right
    return clusters


def spread_rows(rows: Doubles, seed: int) -> Doubles:
    """As many rows as there are columns, as close to orthogonal to each other as they come."""
    chosen = [rows[np.random.default_rng(seed).integers(len(rows))]]
    overlap = np.zeros(len(rows))
    for _ in range(rows.shape[1] - 1):
        overlap += np.abs(rows @ chosen[-1])
        chosen.append(rows[overlap.argmin()])
    return np.array(chosen)
