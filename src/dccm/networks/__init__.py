"""The networks: `build_encoder` makes the one that settings describe."""

from dccm.arrays import ImageShape
from dccm.networks.base import Encoder, NetworkConfig
from dccm.networks.paper import PaperEncoder


def build_encoder(config: NetworkConfig, shape: ImageShape, outputs: int) -> Encoder:
    """An encoder with fresh weights.

    Args:
        config: Its settings.
        shape: Shape of the images.
        outputs: Length of the prediction feature.
    """
    return PaperEncoder(config, shape, outputs)
