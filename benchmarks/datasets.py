"""Image sets for benchmarks: parquet files in the Hugging Face image layout, or the digits of scikit-learn."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from dccm.data.datasets import load_digits
from dccm.data.images import ImageSet


def read(source: str, split: str | None = None) -> ImageSet:
    """`digits`, or a parquet file with the columns image, label and split."""
    return load_digits() if source == "digits" else _read_parquet(Path(source), split)


def some_of(found: ImageSet, count: int | None) -> ImageSet:
    """Random images of a set, in random order; the same ones every time."""
    if count is None:
        return found
    chosen = np.random.default_rng(0).permutation(len(found.images))[:count]
    assert found.labels is not None
    splits = None if found.splits is None else found.splits[chosen]
    return ImageSet(found.images[chosen], [found.names[i] for i in chosen], found.labels[chosen], splits=splits)


def _read_parquet(path: Path, split: str | None) -> ImageSet:
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(path).to_pylist()
    chosen = [row for row in rows if split in (None, row["split"])]
    images = [np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))) for row in chosen]
    if any(image.ndim == 3 for image in images):
        images = [image if image.ndim == 3 else image[..., np.newaxis].repeat(3, axis=2) for image in images]
    stacked = np.stack(images)
    names = [f"{path.stem}/{number}" for number in range(len(images))]
    return ImageSet(
        stacked if stacked.ndim == 4 else stacked[..., np.newaxis],
        names,
        np.array([row["label"] for row in chosen]),
        splits=np.array([row["split"] for row in chosen]),
    )
