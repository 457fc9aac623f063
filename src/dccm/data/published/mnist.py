"""MNIST (LeCun et al., 1998): the four idx files, packed or not."""

import gzip
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from dccm.arrays import Bytes
from dccm.data.published.download import Remote
from dccm.data.published.official import BROKEN_ARCHIVE, Benchmark
from dccm.data.sources.arrays import ArraySource
from dccm.errors import UserError, require

_HOMES = ("", "mnist", "MNIST", "MNIST/raw", "mnist/raw")
"""Below the root; torchvision keeps them in the folder `raw`."""
_PARTS = (
    ("train", "train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("test", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
_BYTES = 0x08
"""The code for unsigned bytes in the head of an idx file."""


class Digits(ArraySource):
    """Handwritten digits, each labelled with its value."""

    kind = "benchmark"
    class_names: Sequence[str] = tuple("0123456789")


def locate_mnist(root: Path) -> Path | None:
    """The folder that holds all four files."""
    names = [name for _, *pair in _PARTS for name in pair]
    return next((root / home for home in _HOMES if all(_file(root / home, name) for name in names)), None)


def read_mnist(folder: Path, variant: str = "") -> Digits:
    """The training images, then the test images."""
    del variant  # There is one.
    images, labels, files = [], [], []
    for _, *names in _PARTS:
        paths = [path for name in names if (path := _file(folder, name)) is not None]
        images.append(_idx(paths[0], axes=3))
        labels.append(_idx(paths[1], axes=1))
        files += paths
        require(
            len(images[-1]) == len(labels[-1]),
            f"{paths[1]} must hold a label for each of the {len(images[-1])} images of {paths[0].name}, it holds "
            f"{len(labels[-1])}. Get the official file.",
        )
    splits = np.repeat([split for split, *_ in _PARTS], [len(part) for part in images])
    names = [f"{split}/{number:05d}" for (split, *_), part in zip(_PARTS, images) for number in range(len(part))]
    stacked = np.concatenate(images)[..., np.newaxis]
    return Digits(stacked, names, np.concatenate(labels).astype(np.int64), splits, files=files)


def _file(folder: Path, name: str) -> Path | None:
    """One of the names under which such a file goes about: some unpack `-idx` as `.idx`."""
    spellings = [name, f"{name}.gz", name.replace("-idx", ".idx"), f"{name.replace('-idx', '.idx')}.gz"]
    return next((folder / spelling for spelling in spellings if (folder / spelling).is_file()), None)


def _idx(path: Path, axes: int) -> Bytes:
    """An array of bytes: two zeros, the type, the number of axes, the length of each, the values."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except BROKEN_ARCHIVE as error:
        raise UserError(f"{path} is damaged ({error}). Delete it, and get the official file.") from error
    head = 4 + 4 * axes
    require(
        content[:4] == bytes((0, 0, _BYTES, axes)) and len(content) >= head,
        f"{path} must begin with the magic number {0x800 + axes} of an idx file, got {content[:4].hex() or 'nothing'}. "
        "Get the official file.",
    )
    shape = tuple(int(size) for size in np.frombuffer(content[4:head], dtype=">u4"))
    require(
        len(content) - head == prod(shape),
        f"{path} must hold {prod(shape):,} values, as its head says, it holds {len(content) - head:,}. "
        "Get the official file.",
    )
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape)


def _remote(name: str, md5: str, size: int) -> Remote:
    return Remote(f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}", md5, size)


MNIST = Benchmark(
    locate_mnist,
    read_mnist,
    "the four files train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and "
    "t10k-labels-idx1-ubyte.gz are not all there",
    (
        _remote("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
        _remote("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", 28_881),
        _remote("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", 1_648_877),
        _remote("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", 4_542),
    ),
    folder="mnist",
)
