"""A method of your own in the package's training loop, which knows budgets, schedules and checkpoints.

python examples/new_method.py

CONTRIBUTING.md says how it becomes one of `dccm methods`.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from dccm.arrays import ImageShape
from dccm.config import Positive, Section, Several, TrainingConfig
from dccm.data.loader import Loader
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig
from dccm.training.loop import train
from dccm.training.update import Update


@dataclass(frozen=True, kw_only=True)
class MirrorConfig(Section):
    """Settings, with their bounds; `--set` and presets would know them."""

    mini_batch: Several = 64
    learning_rate: Positive = 1e-3
    encoder: NetworkConfig = NetworkConfig(width=0.25)


class Mirror(GradientMethod[MirrorConfig]):
    """Learn features by telling whether an image is mirrored; k-means makes clusters of them."""

    config_type = MirrorConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: MirrorConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder = build_encoder(config.encoder, shape, outputs=2)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self):
        return {"all": torch.optim.Adam(self.parameters(), lr=self.config.learning_rate)}

    def updates(self, batch):
        for images in batch.images.split(self.config.mini_batch):
            views = torch.cat([images, images.flip(3)])
            mirrored = torch.arange(2).repeat_interleave(len(images))
            yield Update(F.cross_entropy(self.encoder(views).logits, mirrored), self.optimizers["all"], len(images))


if __name__ == "__main__":
    images = (load_digits().images[:300, :, :, None] * 15).astype("uint8")
    method = Mirror(ImageShape(1, 8, 8), 10, MirrorConfig())
    loader = Loader(images, batch_size=150, seed=0, device=torch.device("cpu"))
    history = train(method, loader, TrainingConfig(epochs=3))
    method.finish(loader)
    print("Loss of each epoch:", [round(record["loss"], 3) for record in history])
    with torch.inference_mode():
        probabilities = loader.over_all(method.predict)
    print("Sizes of the clusters:", np.bincount(probabilities.argmax(axis=1)))
