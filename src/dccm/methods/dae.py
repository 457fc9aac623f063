"""Stacked denoising auto-encoders (Vincent et al., JMLR 2010).

Each level sees its input with a part of it destroyed and must give back the whole; to fill the gaps it has to know
what belongs together. The level above does the same with what the level below makes of whole images.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.config import Momentum, Positive, Section, Several
from dccm.data.loader import Batch, equal_parts
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks import build_encoder
from dccm.networks.base import Encoder, NetworkConfig
from dccm.networks.decoder import Decoder
from dccm.training.update import Update


@dataclass(frozen=True, kw_only=True)
class DAEConfig(Section):
    """Settings of the stacked denoising auto-encoder."""

    destroyed: Momentum = 0.25
    """Share of the values that are set to 0 (ν of the paper's masking noise, which tries 0 to 0.5)."""
    mini_batch: Several = 100
    """Images in one gradient step."""
    learning_rate: Positive = 1e-3
    """Step size of Adam; a choice of ours, as the paper's is for plain gradient descent."""
    encoder: NetworkConfig = NetworkConfig()


class DAEMethod(GradientMethod[DAEConfig]):
    """Two levels: the encoder up to its shallow map, and from there to its deep feature."""

    year = 2010
    citation = "Vincent et al., Stacked Denoising Autoencoders, JMLR 2010"
    learns = "features; clusters by k-means"
    cost = "1 encoder and 1 decoder step and 1 forward pass per image and pass"
    no_vectors = "learns to mend pictures"
    config_type = DAEConfig
    networks = ("encoder", "map_decoder", "decoder")

    def __init__(self, shape: ImageShape, n_clusters: int, config: DAEConfig) -> None:
        super().__init__(shape, n_clusters, config)
        self.encoder = build_encoder(config.encoder, shape, n_clusters)
        self.map_decoder = MapDecoder(self.encoder.map_channels, shape)
        self.decoder = Decoder(map_shape(self.encoder, shape), self.encoder.feature_size)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        return {"all": torch.optim.Adam(self.parameters(), lr=self.config.learning_rate)}

    def updates(self, batch: Batch) -> Iterator[Update]:
        """For each mini-batch, the losses of both levels."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            shallow = self._denoise_images(images, batch.generator)
            deep = self._denoise_maps(images, batch.generator)
            yield Update(shallow + deep, self.optimizers["all"], len(images), {"shallow": shallow, "deep": deep})

    def _denoise_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Cross-entropy of whole images, given those with gaps (the paper's loss for inputs in [0, 1])."""
        seen = destroy(images, self.config.destroyed, generator)
        return F.binary_cross_entropy_with_logits(self.map_decoder(self.encoder.feature_map(seen)), images)

    def _denoise_maps(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Squared error of whole shallow maps, given those with gaps; as in the paper, of whole images."""
        with torch.no_grad():
            maps = self.encoder.feature_map(images)
        feature = self.encoder.feature(self.encoder.conv(destroy(maps, self.config.destroyed, generator)))
        return F.mse_loss(self.decoder(feature), maps)

    def embed(self, images: Tensor) -> Tensor:
        """The deep feature of the whole image at length 1, for the same reason as in `ae.py`."""
        return F.normalize(self.encoder(images).feature)


class MapDecoder(nn.Module):
    """Shallow maps -> logits of the pixels: enlarge, then one convolution, as each level has one layer to go back."""

    def __init__(self, channels: int, shape: ImageShape) -> None:
        super().__init__()
        self.shape = shape
        self.paint = nn.Conv2d(channels, shape.channels, 5, padding=2)

    def forward(self, maps: Tensor) -> Tensor:
        """Decode maps, (B, C, h, w), to logits of pixels, (B, channels, H, W)."""
        logits: Tensor = self.paint(F.interpolate(maps, size=(self.shape.height, self.shape.width)))
        return logits


def destroy(values: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Set a random share of the values to 0 (masking noise); each has the same chance."""
    kept = torch.rand(values.shape, generator=generator, device=values.device) >= share
    return values * kept


def map_shape(encoder: Encoder, shape: ImageShape) -> ImageShape:
    """Shape of the encoder's shallow map for images of a shape."""
    with torch.no_grad():
        found = encoder.eval().feature_map(torch.zeros(1, *shape))
    encoder.train()
    return ImageShape(*found.shape[1:])
