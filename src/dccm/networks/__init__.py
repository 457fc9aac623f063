"""The networks: `build_encoder` makes the one that settings describe."""

from dccm.arrays import ImageShape
from dccm.networks.base import Encoder, NetworkConfig
from dccm.networks.head import VectorHead
from dccm.networks.paper import PaperEncoder


def build_encoder(config: NetworkConfig, shape: ImageShape, outputs: int) -> Encoder:
    """An encoder with fresh weights.

    Args:
        config: Its settings.
        shape: Shape of the images; vectors in their place get a head instead.
        outputs: Length of the prediction feature.
    """
    return VectorHead(shape.channels, outputs) if shape.is_vector else PaperEncoder(config, shape, outputs)
