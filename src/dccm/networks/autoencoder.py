"""Auto-encoders: the encoder that all methods have with its decoder, or fully connected layers there and back."""

from collections import OrderedDict
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.networks import build_encoder
from dccm.networks.base import Encoder, EncoderOutput, NetworkConfig
from dccm.networks.decoder import Decoder

Network = Literal["conv", "dense"]
WIDTHS = (500, 500, 2000, 10)
"""Layers of DEC's network (Xie et al., 2016), the same for all data sets; the last is the feature."""


def autoencoder(
    network: Network, config: NetworkConfig, shape: ImageShape, n_clusters: int
) -> tuple[Encoder | nn.Module, nn.Module, int]:
    """Encoder, decoder and the length of the feature between them.

    Args:
        network: `conv` for the package's encoder, `dense` for fully connected layers.
        config: Settings of that encoder.
        shape: Shape of the images.
        n_clusters: K, for the encoder's last layer.
    """
    if network == "conv":
        encoder = build_encoder(config, shape, n_clusters)
        return encoder, Decoder(shape, encoder.feature_size), encoder.feature_size
    pixels = shape.channels * shape.height * shape.width
    down = nn.Sequential(nn.Flatten(), dense(pixels, *WIDTHS))
    return down, nn.Sequential(dense(*WIDTHS[::-1], pixels), nn.Unflatten(1, shape)), WIDTHS[-1]


def feature_of(encoder: Encoder | nn.Module, images: Tensor) -> Tensor:
    """The feature between encoder and decoder, of either network, (B, D)."""
    encoded: EncoderOutput | Tensor = encoder(images)
    return encoded if isinstance(encoded, Tensor) else encoded.feature


def dense(*widths: int) -> nn.Sequential:
    """Linear layers of these widths with ReLU between them."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (width, wanted) in enumerate(pairwise(widths)):
        if number:
            layers[f"relu{number}"] = nn.ReLU()
        linear = nn.Linear(width, wanted)
        # Glorot's start: from larger weights (Kaiming's) codes keep what chance gave them; see docs/lab/baselines.md.
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers[f"linear{number}"] = linear
    return nn.Sequential(layers)
