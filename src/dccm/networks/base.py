"""The contract of an encoder, and the settings from which one is built."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Protocol, TypeGuard

from torch import Tensor, nn

from dccm.arrays import SMALLEST_SIDE
from dccm.config import Bounds, Count, Positive, Section
from dccm.networks.balance import Balance

ShallowMap = Literal["pooled", "unpooled"]
Initialisation = Literal["torch", "identity"]
LogitNorm = Literal["none", "batch", "balanced"]
InputSide = Annotated[int, Bounds(SMALLEST_SIDE)] | Literal["full"]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(Section):
    """Settings of an encoder; the defaults are the paper's network for the size of the images."""

    architecture: Literal["nearest", 32, 64, 96] = "nearest"
    """The paper's network for this image side, or for the one that is nearest to the images'."""
    width: Positive = 1.0
    """Channels of every convolution, as a multiple of the paper's."""
    input_side: InputSide = "full"
    """Shorter side in pixels at which larger images enter the network, so that a pass costs less; full: as they are."""
    detail: Count = 1
    """Pixels along each side of a square that enters as the channels of one position, where images are that much larger
    than input_side: details are seen at hardly any cost; 1: images are shrunk instead."""
    shallow_map: ShallowMap = "pooled"
    """Where the 32-pixel network's shallow map S is taken: behind the pooling after it, or before."""
    logit_norm: LogitNorm = "none"
    """Norm on the outputs of the last linear layer: no norm, batch norm, or batch norm with one scale for all."""
    balance: Balance = "uniform"
    """Sizes of clusters that a head on vectors of a pretrained encoder expects: equal ones, those that k-means finds,
    or none in particular. Networks that learn from images have logit_norm."""
    initialisation: Initialisation = "torch"
    """Start of the weights: PyTorch's, or linear layers like the identity and Kaiming-normal convolutions."""


class EncoderOutput(NamedTuple):
    """What the encoder says of a batch; each layer that is used further has its name."""

    feature_map: Tensor
    """Shallow map S, (B, C, H, W)."""
    conv: Tensor
    """Last convolution, (B, C', H', W'): the probe's "Conv"."""
    feature: Tensor
    """Deep feature D of the first linear layer, (B, D): the probe's "Y"."""
    logits: Tensor
    """Outputs of the last linear layer, before their batch norm if there is one, (B, K)."""
    prediction: Tensor
    """Prediction feature z (Eq. (1)): not negative, sums to 1, (B, K)."""


class Encoder(Protocol):
    """What methods need of an encoder, which is a torch module: all layers at once, or one after the other."""

    output: nn.Linear
    """The last layer, from the deep feature to the logits."""

    @property
    def logit_norm(self) -> nn.Module:
        """What the logits go through before the softmax."""

    @property
    def description(self) -> str:
        """Which network it is and how it sees the images; it follows the word "with"."""

    @property
    def map_channels(self) -> int:
        """Channels of the shallow map S."""

    @property
    def feature_size(self) -> int:
        """Length of the deep feature D."""

    def __call__(self, images: Tensor) -> EncoderOutput:
        """Encode images in [0, 1], (B, C, H, W)."""

    def feature_map(self, images: Tensor) -> Tensor:
        """The shallow map S of images."""

    def conv(self, feature_map: Tensor) -> Tensor:
        """The last convolution, from a shallow map."""

    def feature(self, conv: Tensor) -> Tensor:
        """The deep feature D, from the last convolution."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """All weights."""

    def eval(self) -> "Encoder":
        """Use the stored statistics of batch norm."""

    def train(self, mode: bool = True) -> "Encoder":
        """Let batch norm take the statistics of each batch."""


_CONTRACT = [name for name in {**vars(Encoder), **Encoder.__annotations__} if not name.startswith("_")]


def is_encoder(module: object) -> TypeGuard[Encoder]:
    """Whether a module keeps the contract; `isinstance` sees no layers of torch modules from Python 3.12 on."""
    return all(hasattr(module, name) for name in _CONTRACT)
