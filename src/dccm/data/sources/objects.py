"""Data sets that are Python objects: `datasets.Dataset` of Hugging Face, and any `Dataset` of torch.

Both are known by how they behave; neither library is needed.
"""

from pathlib import Path
from typing import Any

import numpy as np

from dccm.data.names import Names, shortened
from dccm.data.sources.base import Item, Source
from dccm.data.sources.parquet import IMAGE_COLUMNS, LABEL_COLUMNS
from dccm.errors import require


class HuggingFace(Source):
    """A `datasets.Dataset` with a column of images; its labels, if it has some, are for evaluation alone."""

    kind = "Hugging Face data set"

    def __init__(self, dataset: Any) -> None:
        require(
            hasattr(dataset, "__len__"),
            "A streamed data set has no length, and images are drawn in random order. Load it with streaming=False.",
        )
        require(len(dataset) > 0, "The data set is empty. Give one that holds images.")
        columns = list(dataset.column_names)
        self._column = next((name for name in IMAGE_COLUMNS if name in columns), "")
        require(
            bool(self._column),
            f"The data set must have a column of images called {' or '.join(IMAGE_COLUMNS)}, it has "
            f"{', '.join(columns)}. Rename it with dataset.rename_column.",
        )
        feature = dataset.features[self._column]
        if hasattr(feature, "decode"):
            # Bytes as they are: decoding at reduced size is ours.
            dataset = dataset.cast_column(self._column, type(feature)(decode=False))
        self._dataset = dataset
        self.names = Names(str(number) for number in range(len(dataset)))
        label = next((name for name in LABEL_COLUMNS if name in columns), None)
        self.labels = None if label is None else np.array(dataset[label])
        self.place = getattr(dataset, "_fingerprint", None) and f"datasets:{dataset._fingerprint}"

    def read(self, index: int) -> Item:
        """One image."""
        cell = self._dataset[index][self._column]
        if isinstance(cell, dict):
            return cell["bytes"] if cell.get("bytes") else Path(cell["path"])
        return as_item(cell)


class Torch(Source):
    """A torch `Dataset`, or a list, whose items are images, or tuples that begin with one, or dictionaries with one.

    A whole number behind the image is taken as its true class. A list may hold paths of files.
    """

    kind = "torch data set"

    def __init__(self, dataset: Any) -> None:
        require(
            hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__"),
            "A data set must have a length and give images by number. Give a map-style Dataset, or an array.",
        )
        require(len(dataset) > 0, "The data set is empty. Give one that holds images.")
        self._dataset = dataset
        if isinstance(dataset, list | tuple):
            self.kind = "list"
        self.names = Names(
            shortened(str(item)) if isinstance(item, str | Path) else str(n) for n, item in _numbered(dataset)
        )
        if _has_labels(dataset):
            self.labels = np.full(len(dataset), -1, dtype=np.int64)

    def read(self, index: int) -> Item:
        """One image; its label is noted on the way."""
        item = self._dataset[index]
        if self.labels is not None:
            self.labels[index] = int(item[1])
        if isinstance(item, dict):
            item = next((item[name] for name in IMAGE_COLUMNS if name in item), None)
            if item is None:
                raise ValueError(f"it holds no image called {' or '.join(IMAGE_COLUMNS)}")
        elif isinstance(item, tuple | list):
            item = item[0]
        return as_item(item)


def as_item(image: Any) -> Item:
    """An image as a data set gives it: tensors have their channels first, a text is the path of a file."""
    if isinstance(image, str | Path):
        return Path(image)
    if hasattr(image, "detach"):
        pixels: np.ndarray[Any, Any] = image.detach().cpu().numpy()
        return pixels.transpose(1, 2, 0) if pixels.ndim == 3 else pixels
    return image if hasattr(image, "getexif") or isinstance(image, bytes) else np.asarray(image)


def _numbered(dataset: Any) -> Any:
    """Items with their numbers; those of a data set are not read for their names, a list's are there already."""
    return enumerate(dataset) if isinstance(dataset, list | tuple) else ((n, None) for n in range(len(dataset)))


def _has_labels(dataset: Any) -> bool:
    """Whether images are followed by a whole number; the first item that can be read tells."""
    for number in range(len(dataset)):
        try:
            item = dataset[number]
        except Exception:
            continue  # Preparing the images reports it with its reason.
        return isinstance(item, tuple | list) and len(item) > 1 and _is_whole(item[1])
    return False


def _is_whole(value: Any) -> bool:
    try:
        return bool(int(value) == value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # The last is torch's, of a tensor of several numbers.
        return False
