"""The networks: `build_encoder` makes the one that settings describe."""

from dccm.arrays import ImageShape
from dccm.networks.base import Encoder, NetworkConfig
from dccm.networks.head import VectorHead
from dccm.networks.paper import PaperEncoder
from dccm.networks.tail import TailHead


def build_encoder(config: NetworkConfig, shape: ImageShape, outputs: int, finetune: int = 0) -> Encoder:
    """An encoder with fresh weights.

    Args:
        config: Its settings.
        shape: Shape of the images; vectors in their place get a head instead.
        outputs: Length of the prediction feature.
        finetune: Blocks of a pretrained encoder that learn, from maps of it in the place of images; 0: none.
    """
    if finetune:
        return TailHead(finetune, shape, outputs, config.balance)
    if shape.is_vector:
        return VectorHead(shape.channels, outputs, config.balance)
    return PaperEncoder(config, shape, outputs)
