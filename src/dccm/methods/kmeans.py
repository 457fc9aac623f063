"""k-means on the pixels (MacQueen, 1967; Lloyd's algorithm).

What matters of a start is where it ends, not how exactly it gets there. So starts run in a few principal components of
the pixels, and the best one goes on with all pixels.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Section
from dccm.data.loader import Loader
from dccm.grouping.neighbours import Pixels, Scaling, principal_axes
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import DirectMethod, features_of
from dccm.training.progress import OnProgress, Stage


@dataclass(frozen=True, kw_only=True)
class KMeansConfig(Section):
    """Settings of k-means."""

    n_init: Count = 10
    """Starts (k-means++), of which the one with the smallest distances is kept."""
    components: Count = 64
    """Principal components of the pixels in which the starts are compared."""
    scaling: Scaling = "none"
    """Pixels as they come, each image of unit length, or the same after the mean image was subtracted."""


class KMeansMethod(DirectMethod[KMeansConfig]):
    """Each image belongs to the nearest of K centres; each centre is the mean of its images."""

    year = 1967
    citation = "MacQueen, Some Methods for Classification and Analysis of Multivariate Observations, 1967"
    learns = "clusters of pixels"
    cost = "seconds to minutes"
    takes_vectors = True
    config_type = KMeansConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: KMeansConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.pixels = Pixels(math.prod(shape), self.config.scaling)
        self.readout = KMeansReadout(n_clusters)

    def fit(self, loader: Loader, on_progress: OnProgress) -> None:
        """Compare the starts, then find the centres from the best one."""
        on_progress(Stage("principal components", 0.0))
        self.pixels.fit(loader)
        rows = features_of(self, loader)
        axes = principal_axes(self.pixels, loader, min(self.config.components, rows.shape[1]))
        on_progress(Stage("starts", 0.0))
        starts = KMeansReadout(self.readout.n_clusters, self.config.n_init)
        starts.fit(rows @ axes.cpu().numpy(), loader.seed)
        on_progress(Stage("k-means", 0.0))
        self.readout.fit(rows, loader.seed, (starts.centres @ axes.T).cpu().numpy())
        on_progress(Stage("k-means", 1.0))

    def embed(self, images: Tensor) -> Tensor:
        """The pixels."""
        rows: Tensor = self.pixels(images)
        return rows

    def predict(self, images: Tensor) -> Tensor:
        """Soft assignment to the centres."""
        probability: Tensor = self.readout(self.embed(images))
        return probability
