"""Arrays of images in `.npy` and `.npz` files."""

from pathlib import Path

from dccm.data.decode import MOST_BYTES
from dccm.data.images import as_bytes
from dccm.data.sources.archive import MOST_GROWTH
from dccm.data.sources.arrays import ArraySource
from dccm.documents import named_if_broken
from dccm.errors import require
from dccm.npy import map_array, read_arrays

_LABEL_KEYS = ("labels", "label", "y")
_SPLIT_KEYS = ("splits", "split")
_IMAGE_KEYS = ("images", "image", "x")


def open_array_file(path: Path) -> ArraySource:
    """The images of an `.npy` file, mapped into memory, or of an `.npz` file, which may hold labels and splits."""
    most = MOST_BYTES + MOST_GROWTH * path.stat().st_size
    with named_if_broken(path, "save it anew with numpy.save"):
        arrays = read_arrays(path, most) if path.suffix.lower() == ".npz" else {"images": map_array(path)}
    key = next((key for key in _IMAGE_KEYS if key in arrays), None)
    require(key is not None, f"{path} must hold an array 'images', it holds {', '.join(arrays)}. Rename one.")
    images = as_bytes(arrays[str(key)])
    labels = next((arrays[key] for key in _LABEL_KEYS if key in arrays), None)
    require(
        labels is None or labels.shape == (len(images),),
        f"{path} must hold one label for each of its {len(images)} images, or none.",
    )
    splits = next((arrays[key] for key in _SPLIT_KEYS if key in arrays), None)
    require(
        splits is None or (splits.shape == (len(images),) and splits.dtype.kind == "U"),
        f"{path} must hold one split, such as 'train', for each of its {len(images)} images, or none.",
    )
    return ArraySource(images, labels=labels, splits=splits, place=str(path.resolve()))
