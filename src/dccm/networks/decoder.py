"""The decoder: features -> images of any shape, an encoder turned round."""

from collections import OrderedDict

from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.networks.paper import nearest_architecture


def doublings(shape: ImageShape) -> tuple[int, ...]:
    """Channels at the start of each doubling of the side, coarse to fine: the widths of the encoder's layers.

    The encoder of 32 pixels makes the side four times smaller before its average pooling, those of 64 and 96 pixels
    sixteen times; one doubling more than that leaves the decoder a start of 4 x 4 to 6 x 6.
    """
    large = shape.height >= 8 and shape.width >= 8 and nearest_architecture(shape).side > 32
    return (256, 128, 128, 64) if large else (256, 128, 64)


class Decoder(nn.Module):
    """Features -> logits of the pixels; their sigmoid is an image with values in [0, 1].

    As in DCGAN (Radford et al., 2016): a linear layer paints a small map of 256 channels, then each transposed
    convolution of stride 2 doubles its side, with batch norm and ReLU before it. The excess is cut off evenly.

    Args:
        shape: Shape of the images, or of whatever maps are wanted.
        feature_size: Length of the features.
    """

    def __init__(self, shape: ImageShape, feature_size: int) -> None:
        super().__init__()
        self.shape = shape
        widths = doublings(shape)
        scale = 2 ** len(widths)
        self.start = (widths[0], -(-shape.height // scale), -(-shape.width // scale))
        self.linear = nn.Linear(feature_size, widths[0] * self.start[1] * self.start[2])
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for number, (width, wanted) in enumerate(zip(widths, (*widths[1:], shape.channels))):
            layers[f"norm{number}"] = nn.BatchNorm2d(width)
            layers[f"relu{number}"] = nn.ReLU(inplace=True)
            layers[f"double{number}"] = nn.ConvTranspose2d(width, wanted, 4, stride=2, padding=1)
        self.layers = nn.Sequential(layers)

    def forward(self, features: Tensor) -> Tensor:
        """Decode features, (B, D), to logits of pixels, (B, C, H, W)."""
        painted: Tensor = self.layers(self.linear(features).unflatten(1, self.start))
        height, width = self.shape.height, self.shape.width
        top, left = (painted.shape[2] - height) // 2, (painted.shape[3] - width) // 2
        return painted[:, :, top : top + height, left : left + width]
