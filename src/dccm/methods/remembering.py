"""What the methods share that divide their images, and know nothing of others."""

from typing import Any

from torch import Tensor

from dccm.evaluation.neighbours import LabelMemory
from dccm.methods.base import DirectMethod
from dccm.networks.encoder import ImageShape


class RememberingMethod(DirectMethod):
    """Remembers the label of every image; a new one gets that of the nearest."""

    config: Any
    """The method's own section; every one has `components` and `scaling`."""

    def __init__(self, shape: ImageShape, n_clusters: int, configs: list[Any]) -> None:
        super().__init__(shape, n_clusters, configs)
        [self.config] = configs
        self.memory = LabelMemory(shape, n_clusters, self.config.components, self.config.scaling)

    def embed(self, images: Tensor) -> Tensor:
        """The pixels."""
        rows: Tensor = self.memory.pixels(images)
        return rows

    def predict(self, images: Tensor) -> Tensor:
        """The cluster of the nearest image."""
        probability: Tensor = self.memory(images)
        return probability
