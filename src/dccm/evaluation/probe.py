"""How much frozen features say of true classes: the MLP probe of Section 4.1 (Figure 4, Tables 5 and 6).

The encoder stays as it is. One hidden layer of 200 units learns the classes of the training images from the features
of a layer, and is asked for those of the test images, which it has not seen. The paper gives the 200 units and the
two layers; standardised features, optimizer and length of the training are choices of ours.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.config import Bounds, Count, Positive, Section
from dccm.data.images import ImageSet
from dccm.data.loader import Loader, equal_parts
from dccm.errors import require
from dccm.networks.base import Encoder, EncoderOutput
from dccm.networks.seeds import drawn_from
from dccm.training.progress import Stage

Layer = Literal["conv", "y"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
Features = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[Any]
OnProgress = Callable[[Stage], None]

_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, kw_only=True)
class ProbeConfig(Section):
    """How the probe learns; the same for every method, so that only features differ."""

    hidden: Count = 200
    """Units of the hidden layer (Section 4.1)."""
    epochs: Count = 20
    """Passes over the training features."""
    fewest_steps: Count = 1000
    """Steps at least: few images are passed over more often."""
    mini_batch: Count = 128
    """Images in one gradient step."""
    learning_rate: Positive = 1e-3
    """Step size of Adam at the start; it falls to zero along half a cosine."""
    seed: Annotated[int, Bounds(0)] = 0
    """Decides the first weights, the order of the images and, where none is given, the split."""


class Split(NamedTuple):
    """Which images the probe learns from, and on which it is scored; row numbers."""

    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


class Probed(NamedTuple):
    """What the probe found out about a model."""

    accuracy: dict[Layer, float]
    """Share of the test images that are classified right (top 1), by layer."""
    train_images: int
    test_images: int


def probe(
    features: Features,
    labels: Labels,
    split: Split,
    config: ProbeConfig | None = None,
    on_progress: OnProgress | None = None,
) -> float:
    """Share of the test images whose class the probe says right (top 1).

    Args:
        features: Frozen features, (N, D).
        labels: True classes, (N,), of any type.
        split: Rows to learn from and to be scored on.
        config: How to learn; none: the defaults.
        on_progress: Called after each pass over the training features.
    """
    require(
        len(features) == len(labels),
        f"labels must be one for each of the {len(features)} features, got {len(labels)}. Bring both in one order.",
    )
    config = config or ProbeConfig()
    classes, numbers = np.unique(labels, return_inverse=True)
    target = torch.from_numpy(numbers.reshape(-1))
    scaled = _Standardised(features, split.train)
    perceptron = _trained(scaled, target, split.train, len(classes), config, on_progress or (lambda _: None))
    return _accuracy(perceptron, scaled, target, split.test)


class _Standardised:
    """Rows of features as floats with mean 0 and deviation 1 over the training images."""

    def __init__(self, features: Features, train: npt.NDArray[np.int64]) -> None:
        self.features = torch.from_numpy(features)
        total = np.zeros(features.shape[1])
        squares = np.zeros(features.shape[1])
        for rows in np.array_split(train, max(1, len(train) // 1000)):  # A copy of all of them would be as large again.
            block = features[rows].astype(np.float64)
            total += block.sum(axis=0)
            squares += np.square(block).sum(axis=0)
        mean = total / len(train)
        deviation = np.sqrt(np.maximum(squares / len(train) - mean**2, 0))
        # A unit that is the same for all images, but for rounding, says nothing.
        varies = deviation > 1e-6 * np.abs(mean)
        scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=varies)
        self.scale, self.shift = (torch.from_numpy(value).float() for value in (scale, -mean * scale))

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Tensor:
        return torch.addcmul(self.shift, self.features[torch.from_numpy(rows)].float(), self.scale)


def _trained(
    features: _Standardised,
    target: Tensor,
    train: npt.NDArray[np.int64],
    n_classes: int,
    config: ProbeConfig,
    on_progress: OnProgress,
) -> nn.Module:
    """The perceptron after its training; softmax is in the loss."""
    generator = torch.Generator().manual_seed(config.seed)
    perceptron = _perceptron(len(features.scale), config.hidden, n_classes, config.seed)
    optimizer = torch.optim.Adam(perceptron.parameters(), lr=config.learning_rate, fused=True)
    minis = equal_parts(len(train), config.mini_batch)
    epochs = max(config.epochs, math.ceil(config.fewest_steps / minis))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * minis)
    for epoch in range(epochs):
        order = train[torch.randperm(len(train), generator=generator).numpy()]
        for rows in np.array_split(order, minis):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(perceptron(features[rows]), target[rows]).backward()
            optimizer.step()
            schedule.step()
        on_progress(Stage("probe", (epoch + 1) / epochs))
    return perceptron


def _perceptron(inputs: int, hidden: int, n_classes: int, seed: int) -> nn.Module:
    """One hidden layer; the caller's own random state stays as it is."""
    with drawn_from(seed):
        return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, n_classes))


@torch.inference_mode()
def _accuracy(perceptron: nn.Module, features: _Standardised, target: Tensor, test: npt.NDArray[np.int64]) -> float:
    """Share of right answers."""
    right = 0
    for rows in np.array_split(test, max(1, len(test) // 1000)):
        right += int((perceptron(features[rows]).argmax(dim=1) == target[rows]).sum())
    return right / len(test)


def probe_encoder(
    encoder: Encoder,
    loader: Loader,
    image_set: ImageSet,
    layers: tuple[Layer, ...] = LAYERS,
    *,
    test_share: float | None = None,
    config: ProbeConfig | None = None,
    on_progress: OnProgress | None = None,
) -> Probed:
    """Accuracy of the probe on each wanted layer of a trained encoder.

    Args:
        encoder: The encoder.
        loader: The images, on its device.
        image_set: The same images with true classes, and with splits unless `test_share` is given.
        layers: `conv`, the last convolution's map; `y`, the deep feature.
        test_share: Score on so many randomly drawn images, instead of on the split `test`.
        config: How to learn; None: the defaults.
        on_progress: Called as the images are encoded, and after each pass of the probe.
    """
    config = config or ProbeConfig()
    labels = image_set.labels
    require(
        labels is not None,
        "The images have no labels, and the probe learns from them. Give a source with labels: a column label, or "
        "class folders.",
    )
    split = split_of(image_set, test_share, config.seed)
    features = layer_features(encoder, loader, layers, on_progress)
    accuracy = {
        layer: probe(features[layer], labels, split, config, on_progress)  # type: ignore[arg-type]
        for layer in layers
    }
    return Probed(accuracy, len(split.train), len(split.test))


def split_of(image_set: ImageSet, test_share: float | None, seed: int) -> Split:
    """The images' own split, or a random one if a share is given.

    Args:
        image_set: The images.
        test_share: Share of the images to be scored on; none: the splits `train` and `test` of the images.
        seed: Decides the draw.
    """
    if test_share is None:
        return _own_split(image_set)
    require(0 < test_share < 1, f"test_share must lie between 0 and 1, got {test_share:g}. Give 0.2, for example.")
    count = len(image_set.images)
    order = np.random.default_rng(seed).permutation(count)
    tested = min(max(1, round(test_share * count)), count - 1)
    require(
        count - tested >= 2, f"test_share must leave 2 images or more to learn from, got {test_share:g} of {count}."
    )
    return Split(np.sort(order[tested:]), np.sort(order[:tested]))


def _own_split(image_set: ImageSet) -> Split:
    instead = "Draw test images at random, with a test_share of 0.2."
    require(image_set.splits is not None, f"The images are not split into train and test. {instead}")
    names = np.asarray(image_set.splits)
    split = Split(np.flatnonzero(names == "train"), np.flatnonzero(names == "test"))
    require(
        len(split.train) >= 2 and len(split.test) >= 1,
        f"The images must have the splits train and test, they have {', '.join(map(str, np.unique(names)))}. {instead}",
    )
    return split


@torch.inference_mode()
def layer_features(
    encoder: Encoder, loader: Loader, layers: tuple[Layer, ...] = LAYERS, on_progress: OnProgress | None = None
) -> dict[Layer, Features]:
    """Frozen features of all images by layer, (N, D), in half precision: "Conv" of CIFAR-10 takes 0.5 GB so.

    Args:
        encoder: The encoder; its batch norm uses its stored statistics.
        loader: The images.
        layers: `conv` is the whole map behind the last convolution, flattened; `y` is the deep feature.
        on_progress: Called as the images are encoded.
    """
    encoder.eval()
    features: dict[Layer, Features] = {}
    done = 0
    for images in loader.ordered():
        output: EncoderOutput = encoder(images)
        for layer in layers:
            values = output.conv.flatten(1) if layer == "conv" else output.feature
            rows = features.setdefault(layer, np.empty((len(loader), values.shape[1]), np.float16))
            rows[done : done + len(values)] = values.clamp(max=_LARGEST).cpu().numpy()
        done += len(images)
        if on_progress is not None:
            on_progress(Stage("features", done / len(loader)))
    return features
