"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): the Python version, as published."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.data.published.download import Remote
from dccm.data.published.official import Benchmark, Layout, read_files
from dccm.data.published.pickled import read_dictionary
from dccm.data.sources.arrays import ArraySource
from dccm.errors import require

_SIDE = 32
_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEN = Layout("cifar-10-batches-py", "cifar-10-python.tar.gz", "data_batch_1", ("cifar10", "CIFAR10", "CIFAR-10"))
_HUNDRED = Layout("cifar-100-python", "cifar-100-python.tar.gz", "train", ("cifar100", "CIFAR100", "CIFAR-100"))
_SERVER = "https://www.cs.toronto.edu/~kriz"


class Cifar(ArraySource):
    """Images of CIFAR in the official order: training batches, then the test batch."""

    kind = "benchmark"
    class_names: Sequence[str] = ()
    """By label; empty if the file that lists them is missing."""
    fine_labels: npt.NDArray[np.int64] | None = None
    """The 100 classes of CIFAR-100, whatever `labels` are."""


class _Batch(NamedTuple):
    """A file of images."""

    path: Path
    """Where it is; in an archive, where it would be."""
    split: str
    pixels: Bytes
    """1,024 red, 1,024 green, 1,024 blue values for each image, (N, 3072)."""
    fields: dict[bytes, Any]


def read_cifar10(path: Path, variant: str = "") -> Cifar:
    """The images of the five training batches and of the test batch, with their 10 classes."""
    del variant  # There is one.
    batches, names = _read(path, dict.fromkeys(_TRAIN, "train") | {"test_batch": "test"}, "batches.meta")
    source = _joined(path, batches)
    source.labels = _labels(batches, b"labels")
    source.class_names = _words(names, b"label_names")
    return source


def read_cifar100(path: Path, variant: str = "") -> Cifar:
    """The images of both files, with the 20 superclasses, or with the 100 classes in the variant `fine`."""
    batches, names = _read(path, {"train": "train", "test": "test"}, "meta")
    source = _joined(path, batches)
    source.fine_labels = _labels(batches, b"fine_labels")
    source.labels = source.fine_labels if variant == "fine" else _labels(batches, b"coarse_labels")
    source.class_names = _words(names, b"fine_label_names" if variant == "fine" else b"coarse_label_names")
    return source


def _read(path: Path, files: dict[str, str], meta: str) -> tuple[list[_Batch], dict[bytes, Any]]:
    """The batches, and the file of class names."""
    contents = read_files(path, [*files], [meta])
    batches = [_batch(contents.pop(name).tobytes(), path / name, split) for name, split in files.items()]
    return batches, read_dictionary(contents[meta].tobytes(), path / meta) if meta in contents else {}


def _batch(content: bytes, path: Path, split: str) -> _Batch:
    fields = read_dictionary(content, path)
    pixels = fields.pop(b"data", None)
    require(
        isinstance(pixels, np.ndarray) and pixels.ndim == 2 and pixels.shape[1] == 3 * _SIDE * _SIDE,
        f"{path} must hold an array 'data' with 3,072 bytes for each image. Get the official file.",
    )
    return _Batch(path, split, pixels, fields)


def _joined(path: Path, batches: Sequence[_Batch]) -> Cifar:
    """All images as one array; planes of colour become the last axis."""
    splits = np.repeat([batch.split for batch in batches], [len(batch.pixels) for batch in batches])
    images = np.empty((len(splits), _SIDE, _SIDE, 3), dtype=np.uint8)
    start = 0
    for batch in batches:
        end = start + len(batch.pixels)
        images[start:end] = batch.pixels.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1)
        start = end
    files = [batch.path for batch in batches] if path.is_dir() else [path]
    return Cifar(images, _names(batches), splits=splits, files=files)


def _names(batches: Sequence[_Batch]) -> Iterator[str]:
    """The number within the split makes a name unique; the authors promise that for no file name."""
    counts = {"train": 0, "test": 0}
    for batch in batches:
        for file in _column(batch, b"filenames", bytes):
            yield f"{batch.split}/{counts[batch.split]:05d}_{file.decode('latin-1')}"
            counts[batch.split] += 1


def _labels(batches: Sequence[_Batch], key: bytes) -> npt.NDArray[np.int64]:
    return np.concatenate([np.array(_column(batch, key, int), dtype=np.int64) for batch in batches])


def _column(batch: _Batch, key: bytes, kind: type) -> list[Any]:
    """One value for each image of a batch."""
    found = batch.fields.get(key)
    sound = isinstance(found, list) and len(found) == len(batch.pixels) and all(isinstance(one, kind) for one in found)
    require(
        sound,
        f"{batch.path} must hold a list '{key.decode()}' with one entry for each of its {len(batch.pixels)} images. "
        "Get the official file.",
    )
    return list(found or [])


def _words(names: dict[bytes, Any], key: bytes) -> tuple[str, ...]:
    return tuple(name.decode() for name in names.get(key, ()))


CIFAR10 = Benchmark(
    _TEN.locate,
    read_cifar10,
    _TEN.absent(),
    (Remote(f"{_SERVER}/{_TEN.archive}", "c58f30108f718f92721af3b95e74349a", 170_498_071),),
)
CIFAR100 = Benchmark(
    _HUNDRED.locate,
    read_cifar100,
    _HUNDRED.absent(),
    (Remote(f"{_SERVER}/{_HUNDRED.archive}", "eb9058c3a382ffc7106e4002c42a8d85", 169_001_437),),
    variants=("fine",),
)
