"""The small network of JULE (Yang et al., 2016): features that know where in the image something is."""

from collections import OrderedDict

from torch import nn

from dccm.arrays import ImageShape
from dccm.networks.paper import nearest_architecture

_CHANNELS, _KERNEL = 50, 5
_LEAST = 4
"""Side of the map behind which no further convolution follows."""
FEATURES = 160


def small_network(shape: ImageShape) -> nn.Sequential:
    """Images -> features, (B, 160): convolutions, each with batch norm, ReLU and pooling by 2, then a linear layer.

    As many as leave a map of at least 4 x 4, but one at least: two for images of 28 and 32 pixels, three for 64. Every
    place of the last map has weights of its own, and nothing follows the linear layer.
    """
    nearest_architecture(shape)  # Refuses images that are too small.
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    channels, (height, width) = shape.channels, shape[1:]
    while not layers or min(_after(height), _after(width)) >= _LEAST:
        number = len(layers) // 4
        layers[f"conv{number}"] = nn.Conv2d(channels, _CHANNELS, _KERNEL)
        layers[f"norm{number}"] = nn.BatchNorm2d(_CHANNELS)
        layers[f"relu{number}"] = nn.ReLU(inplace=True)
        layers[f"pool{number}"] = nn.MaxPool2d(2)
        channels, height, width = _CHANNELS, _after(height), _after(width)
    layers["flat"] = nn.Flatten()
    layers["linear"] = nn.Linear(channels * height * width, FEATURES)
    return nn.Sequential(layers)


def _after(side: int) -> int:
    """The side of a map behind a convolution without padding and its pooling."""
    return (side - _KERNEL + 1) // 2
