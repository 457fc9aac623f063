"""The data sets that are known by name: Table 1 of the paper, and the digits that ship with scikit-learn."""

from typing import NamedTuple

import numpy as np

from dccm.data.images import ImageSet


class DataSet(NamedTuple):
    """A row of Table 1."""

    title: str
    train: int
    test: int | None
    clusters: str
    size: str


DATASETS = {
    "cifar10": DataSet("CIFAR-10", 50_000, 10_000, "10", "32 x 32 x 3"),
    "cifar100": DataSet("CIFAR-100", 50_000, 10_000, "20/100", "32 x 32 x 3"),
    "stl10": DataSet("STL-10", 13_000, None, "10", "96 x 96 x 3"),
    "imagenet10": DataSet("ImageNet-10", 13_000, None, "10", "96 x 96 x 3"),
    "imagenet_dog15": DataSet("ImageNet-dog-15", 19_500, None, "15", "96 x 96 x 3"),
    "tiny_imagenet": DataSet("Tiny-ImageNet", 100_000, None, "200", "64 x 64 x 3"),
    "mnist": DataSet("MNIST", 60_000, 10_000, "10", "28 x 28 x 1"),
    "digits": DataSet("Digits of scikit-learn", 1_797, None, "10", "8 x 8 x 1"),
}
READ_BY_NAME = ("digits",)
"""The sets that need no download; the others are given as a folder or an array, with --dataset for their preset."""


def load_digits() -> ImageSet:
    """The 1,797 handwritten digits that come with scikit-learn; nothing is downloaded."""
    from sklearn.datasets import load_digits as load

    digits = load()
    images = (digits.images * (255 / 16)).round().astype(np.uint8)[..., np.newaxis]
    return ImageSet(images, [f"digits/{number:04d}" for number in range(len(images))], digits.target)
