"""The data sets that are known by name: Table 1 of the paper, MNIST, and the digits that ship with scikit-learn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dccm.data.images import ImageSet, Origin
from dccm.data.published.cifar import CIFAR10, CIFAR100
from dccm.data.published.download import fetch
from dccm.data.published.imagenet import IMAGENET10, IMAGENET_DOG15
from dccm.data.published.mnist import MNIST
from dccm.data.published.official import Benchmark
from dccm.data.published.stl import STL10
from dccm.data.published.tiny_imagenet import TINY_IMAGENET
from dccm.data.sources.arrays import ArraySource
from dccm.data.sources.base import Source
from dccm.errors import UserError, choose, require
from dccm.files import cache_folder


class DataSet(NamedTuple):
    """A row of Table 1, where the images come from, and what their owners ask for."""

    title: str
    train: int
    test: int | None
    clusters: str
    size: str
    origin: str
    licence: str
    citation: str


_DOWNLOAD, _IMAGENET = "download", "train folder of ImageNet"
_NO_LICENCE, _RESEARCH = "none stated", "non-commercial research"
_DIGITS = "scikit-learn#digits"
"""Their place, though they are no file."""
_CHANG = "Chang et al., ICCV 2017; Deng et al., CVPR 2009"

DATASETS = {
    "cifar10": DataSet(
        "CIFAR-10", 50_000, 10_000, "10", "32 x 32 x 3", _DOWNLOAD, _NO_LICENCE, "Krizhevsky, tech. report 2009"
    ),
    "cifar100": DataSet(
        "CIFAR-100", 50_000, 10_000, "20/100", "32 x 32 x 3", _DOWNLOAD, _NO_LICENCE, "Krizhevsky, tech. report 2009"
    ),
    "stl10": DataSet(
        "STL-10", 13_000, None, "10", "96 x 96 x 3", _DOWNLOAD, _NO_LICENCE, "Coates, Ng and Lee, AISTATS 2011"
    ),
    "imagenet10": DataSet("ImageNet-10", 13_000, None, "10", "96 x 96 x 3", _IMAGENET, _RESEARCH, _CHANG),
    "imagenet_dog15": DataSet("ImageNet-dog-15", 19_500, None, "15", "96 x 96 x 3", _IMAGENET, _RESEARCH, _CHANG),
    "tiny_imagenet": DataSet(
        "Tiny-ImageNet", 100_000, None, "200", "64 x 64 x 3", _DOWNLOAD, _RESEARCH, "Le and Yang, CS 231N 2015"
    ),
    "mnist": DataSet(
        "MNIST", 60_000, 10_000, "10", "28 x 28 x 1", _DOWNLOAD, "CC BY-SA 3.0", "LeCun et al., Proc. IEEE 1998"
    ),
    "digits": DataSet(
        "Digits of scikit-learn", 1_797, None, "10", "8 x 8 x 1", "in scikit-learn", "CC BY 4.0",
        "Alpaydin and Kaynak, UCI 1998",
    ),
}  # fmt: skip
"""By name; in Table 1 the images of STL-10 are counted together, though they have a split."""
BENCHMARKS: dict[str, Benchmark] = {
    "cifar10": CIFAR10,
    "cifar100": CIFAR100,
    "stl10": STL10,
    "imagenet10": IMAGENET10,
    "imagenet_dog15": IMAGENET_DOG15,
    "tiny_imagenet": TINY_IMAGENET,
    "mnist": MNIST,
}
"""All of them but the digits, which are no files."""


def data_set_name(images: Any) -> str:
    """The name of a data set, if that is what the user gave; a file or folder that is called so comes first."""
    by_name = isinstance(images, str) and images in DATASETS and not Path(images).exists()
    return images if by_name else ""


def open_benchmark(
    name: str,
    root: str | Path | None = None,
    *,
    variant: str = "",
    download: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
) -> Source:
    """The images of a data set by its name: those that the paper clusters, with the classes that it clusters into.

    Args:
        name: One of `DATASETS`.
        root: Where its files are, or go; None: the folder of downloads in the user's cache.
        variant: `fine` for the 100 classes of CIFAR-100, `unlabelled` for the other images of STL-10, `val` for
            Tiny-ImageNet with its validation images as the split `test`.
        download: Get what is missing, if it can be had without a registration.
        on_progress: Called with bytes downloaded and bytes in all.
    """
    choose(name, DATASETS, "data set", "dccm datasets")
    variants = BENCHMARKS[name].variants if name in BENCHMARKS else ()
    require(
        variant in ("", *variants),
        f"variant of {name} must be {' or '.join(variants) or 'left out'}, got '{variant}'.",
    )
    if name == "digits":
        digits = load_digits()
        return ArraySource(digits.images, digits.names, digits.labels, place=_DIGITS)
    root = Path(root or cache_folder() / "datasets")
    try:
        path = _locate(name, root, download, on_progress)
        source = BENCHMARKS[name].read(path, variant)
    except OSError as error:
        raise UserError(
            f"{error.filename or root} cannot be read: {error.strerror}. Change its permissions."
        ) from error
    # Two sets can lie in one folder.
    source.place = f"{path.resolve()}#{name}" + (f".{variant}" if variant else "")
    return source


def _locate(name: str, root: Path, download: bool, on_progress: Callable[[int, int], None] | None) -> Path:
    """The folder or archive of a data set, downloaded if need be."""
    benchmark = BENCHMARKS[name]
    require(not root.is_file(), f"data_root must be a folder, and {root} is a file. Give the folder that holds it.")
    path = benchmark.locate(root)
    if path is None and benchmark.remotes and download:
        fetch(benchmark.remotes, root / benchmark.folder, on_progress)
        path = benchmark.locate(root)
    if path is None:
        what = ", ".join(remote.url for remote in benchmark.remotes)
        hint = f"; put {what} there, or let it be downloaded" if benchmark.remotes else ""
        raise UserError(f"{DATASETS[name].title} is not in {root}: {benchmark.absent}{hint}.")
    return path


def load_digits() -> ImageSet:
    """The 1,797 handwritten digits that come with scikit-learn; nothing is downloaded."""
    from sklearn.datasets import load_digits as load

    digits = load()
    images = (digits.images * (255 / 16)).round().astype(np.uint8)[..., np.newaxis]
    names = [f"digits/{number:04d}" for number in range(len(images))]
    return ImageSet(images, names, digits.target, stated=Origin("array", _DIGITS))
