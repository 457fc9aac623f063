"""STL-10 (Coates, Ng and Lee, AISTATS 2011): the binary version, as published."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.data.published.download import Remote
from dccm.data.published.official import Benchmark, Layout, read_files
from dccm.data.sources.arrays import ArraySource
from dccm.errors import require

_SIDE = 96
_PIXELS = 3 * _SIDE * _SIDE
_CLASSES = 10
_LAYOUT = Layout("stl10_binary", "stl10_binary.tar.gz", "train_X.bin", ("stl10", "STL10", "STL-10"))


class STL(ArraySource):
    """Images of STL-10 in the official order: training, then test images; or the unlabelled ones alone."""

    kind = "benchmark"
    class_names: Sequence[str] = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]


def read_stl10(path: Path, variant: str = "") -> STL:
    """The 13,000 labelled images, or in the variant `unlabelled` the 100,000 others, which stay in their file.

    From an archive the others take 2.8 GB of memory; from an unpacked folder, nothing.
    """
    if variant == "unlabelled":
        content = read_files(path, ["unlabeled_X.bin"])["unlabeled_X.bin"]
        images = _images(content, path / "unlabeled_X.bin")
        names = [f"unlabelled/{number:06d}" for number in range(len(images))]
        return STL(images, names, files=_files(path, ["unlabeled_X.bin"]))
    wanted = ["train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin"]
    contents = read_files(path, wanted)
    parts = [_images(contents[f"{split}_X.bin"], path / f"{split}_X.bin") for split in ("train", "test")]
    labels = [
        _labels(contents[f"{split}_y.bin"], path / f"{split}_y.bin", len(part))
        for split, part in zip(("train", "test"), parts)
    ]
    images = np.concatenate(parts, out=np.empty((sum(map(len, parts)), _SIDE, _SIDE, 3), dtype=np.uint8))
    splits = np.repeat(["train", "test"], [len(part) for part in parts])
    names = [f"{split}/{number:05d}" for split, part in zip(("train", "test"), parts) for number in range(len(part))]
    return STL(images, names, np.concatenate(labels), splits, files=_files(path, wanted))


def _images(content: Bytes, path: Path) -> Bytes:
    """A view of the pixels: three planes of colour for each image, and each plane column by column."""
    require(
        len(content) > 0 and len(content) % _PIXELS == 0,
        f"{path} must hold {_PIXELS:,} bytes for each image, and its {len(content):,} bytes are no multiple of that. "
        "Unpack or download it anew.",
    )
    return content.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 3, 2, 1)


def _labels(content: Bytes, path: Path, count: int) -> npt.NDArray[np.int64]:
    """Classes from 0; in the file they are counted from 1."""
    require(
        len(content) == count and bool((content >= 1).all() and (content <= _CLASSES).all()),
        f"{path} must hold a number from 1 to {_CLASSES} for each of {count:,} images, in a byte; it has "
        f"{len(content):,} bytes. Unpack or download it anew.",
    )
    return content.astype(np.int64) - 1


def _files(path: Path, names: Sequence[str]) -> list[Path]:
    return [path / name for name in names] if path.is_dir() else [path]


STL10 = Benchmark(
    _LAYOUT.locate,
    read_stl10,
    _LAYOUT.absent(),
    (
        Remote(
            f"http://ai.stanford.edu/~acoates/stl10/{_LAYOUT.archive}",
            "91f7769df0f17e558f3565bffb0c7dfb",
            2_640_397_119,
        ),
    ),
    variants=("unlabelled",),
)
