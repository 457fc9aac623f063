"""Deconvolutional network (Zeiler, Krishnan, Taylor and Fergus, CVPR 2010).

No encoder: an image is a sum of filters, each placed where a sparse map says. For given filters the maps are inferred
by minimising reconstruction error plus their absolute values; for given maps the filters take a gradient step. The
maps of one layer are the image of the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.config import Count, Positive, Section, Several
from dccm.data.loader import Batch, equal_parts
from dccm.errors import require
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod
from dccm.networks.paper import nearest_architecture
from dccm.training.update import Update

_POOL = 2
"""Side of the squares of which the next layer sees the mean: it then costs a quarter."""
_GRID = 2
"""Squares along each side of the image in which the last maps are averaged for k-means."""


@dataclass(frozen=True, kw_only=True)
class DeCNNConfig(Section):
    """Settings of the deconvolutional network."""

    first_maps: Count = 9
    """Maps of the first layer (the paper's for its photographs)."""
    second_maps: Count = 45
    """Maps of the second layer (the paper's for its photographs)."""
    filter_side: Count = 7
    """Pixels along a filter's side (the paper's)."""
    sparsity: Positive = 1.0
    """Weight of the maps' absolute values against half the squared error of an image of deviation 1."""
    inference_steps: Count = 10
    """Steps that infer the maps; a choice of ours, as the paper's solver is another."""
    mini_batch: Several = 100
    """Images in one gradient step; the paper uses all of its few at once."""
    learning_rate: Positive = 1e-2
    """Step size of Adam for the filters, which have length 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.filter_side % 2 == 1, f"filter_side must be odd, got {self.filter_side}. The default is 7.")


class DeconvolutionLayer(nn.Module):
    """Filters, (maps, channels, side, side); each has length 1, so that maps cannot hide behind large filters."""

    def __init__(self, channels: int, maps: int, side: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(maps, channels, side, side))

    def forward(self, maps: Tensor) -> Tensor:
        """The images that maps stand for (Eq. (1)): a sum of filters placed by them."""
        return F.conv_transpose2d(maps, self.filters(), padding=self.weight.shape[2] // 2)

    def correlate(self, images: Tensor) -> Tensor:
        """The transpose of `forward`: how well each filter fits at each place."""
        return F.conv2d(images, self.filters(), padding=self.weight.shape[2] // 2)

    def filters(self) -> Tensor:
        """The filters at length 1."""
        return F.normalize(self.weight.flatten(1), dim=1).view_as(self.weight)


class DeCNNMethod(GradientMethod[DeCNNConfig]):
    """Two layers of sparse maps; both learn at the same time, the second from what the first infers."""

    year = 2010
    citation = "Zeiler et al., Deconvolutional Networks, CVPR 2010"
    learns = "features; clusters by k-means"
    cost = "some 20 convolutions of 7 x 7 per layer, image and pass"
    no_vectors = "learns filters that are laid over pictures"
    config_type = DeCNNConfig
    networks = ()
    one_process = "infers its maps in dozens of steps, and all maps would travel after each"

    def __init__(self, shape: ImageShape, n_clusters: int, config: DeCNNConfig) -> None:
        super().__init__(shape, n_clusters, config)
        nearest_architecture(shape)  # Refuses images that are too small.
        self.first = DeconvolutionLayer(shape.channels, self.config.first_maps, self.config.filter_side)
        self.second = DeconvolutionLayer(self.config.first_maps, self.config.second_maps, self.config.filter_side)
        self.readout = KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        return {"all": torch.optim.Adam(self.parameters(), lr=self.config.learning_rate)}

    def updates(self, batch: Batch) -> Iterator[Update]:
        """For each mini-batch, infer the maps, then let the filters learn with the maps held fixed."""
        for images in batch.images.tensor_split(equal_parts(len(batch.images), self.config.mini_batch)):
            (below, maps), (middle, deep) = self.infer(images)
            first = objective(self.first(maps), below, maps, self.config.sparsity)
            second = objective(self.second(deep), middle, deep, self.config.sparsity)
            yield Update(first + second, self.optimizers["all"], len(images), {"first": first, "second": second})

    @torch.no_grad()
    def infer(self, images: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """For each layer what it sees and the maps inferred from it; no gradient."""
        below = standardised(images)
        maps = sparse_maps(self.first, below, self.config.sparsity, self.config.inference_steps)
        middle = standardised(F.avg_pool2d(maps.abs(), _POOL))
        deep = sparse_maps(self.second, middle, self.config.sparsity, self.config.inference_steps)
        return (below, maps), (middle, deep)

    def embed(self, images: Tensor) -> Tensor:
        """Mean strength of each map of the second layer in each quarter of the image, (B, 4 · second_maps)."""
        _, (_, deep) = self.infer(images)
        return F.adaptive_avg_pool2d(deep.abs(), _GRID).flatten(1)


def standardised(images: Tensor) -> Tensor:
    """Each image with mean 0 and deviation 1 over all its values, so that one sparsity fits all images."""
    mean = images.mean(dim=(1, 2, 3), keepdim=True)
    deviation = images.std(dim=(1, 2, 3), keepdim=True)
    return (images - mean) / (deviation + 1e-3)  # An image of one colour stays at 0.


def objective(painted: Tensor, images: Tensor, maps: Tensor, sparsity: float) -> Tensor:
    """Half the squared error plus weighted absolute values (Eq. (2) with p = 1), a sum over each image's values.

    Args:
        painted: What the maps stand for, (B, C, H, W).
        images: What it should be, (B, C, H, W).
        maps: (B, K, H, W).
        sparsity: Weight of the absolute values: 1 / λ of the paper.

    Returns:
        The mean over the images.
    """
    error = (painted - images).square().sum() / 2
    return (error + sparsity * maps.abs().sum()) / len(images)


def sparse_maps(layer: DeconvolutionLayer, images: Tensor, sparsity: float, steps: int) -> Tensor:
    """Maps that nearly minimise `objective`, by accelerated proximal gradient (Beck and Teboulle, 2009).

    Args:
        layer: The filters.
        images: (B, C, H, W).
        sparsity: Weight of the absolute values.
        steps: Number of steps.

    Returns:
        Maps, (B, K, H, W), zero in most places.
    """
    step = 1 / curvature(layer.filters())
    maps = ahead = torch.zeros_like(layer.correlate(images))
    momentum = 1.0
    for _ in range(steps):
        slope = layer.correlate(layer(ahead) - images)
        old, maps = maps, shrink(ahead - step * slope, step * sparsity)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = maps + (momentum - 1) / following * (maps - old)
        momentum = following
    return maps


def shrink(values: Tensor, amount: Tensor) -> Tensor:
    """Bring each value nearer to zero by an amount, and not beyond."""
    return values.sign() * F.relu(values.abs() - amount)


def curvature(filters: Tensor) -> Tensor:
    """Largest curvature of half the squared error over the maps: above it, gradient steps would overshoot.

    At each frequency the filters are a small matrix; its largest singular value, squared, is the curvature there.

    Args:
        filters: (K, C, side, side).

    Returns:
        A number, with a little to spare for frequencies between those that are looked at.
    """
    side = 4 * filters.shape[2]
    spectrum = torch.fft.rfft2(filters.float(), s=(side, side)).permute(2, 3, 1, 0)
    gram = spectrum @ spectrum.mH
    largest: Tensor = torch.linalg.eigvalsh(gram).max()
    return 1.05 * largest
