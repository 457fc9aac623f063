"""Images of whatever kind the user has: the one door to all sources."""

from collections.abc import Callable, Iterable
from glob import has_magic
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import SMALLEST_SIDE, USUAL_SIDES, Fit
from dccm.data.datasets import DATASETS, data_set_name, open_benchmark
from dccm.data.decode import SUFFIXES, Preparation
from dccm.data.duplicates import content_hashes, find_duplicates
from dccm.data.images import ImageSet, Origin, as_bytes, with_channels
from dccm.data.look import sampled
from dccm.data.passing import require_means
from dccm.data.prepare import OnImages, prepare
from dccm.data.published.download import OnBytes
from dccm.data.resize import Size, as_size, require_fit, resized
from dccm.data.sources.archive import TAR_SUFFIXES, Tar, Zip
from dccm.data.sources.array_files import open_array_file
from dccm.data.sources.arrays import ArraySource
from dccm.data.sources.base import Source
from dccm.data.sources.folder import Folder
from dccm.data.sources.listing import STDIN, Listing
from dccm.data.sources.objects import HuggingFace, Torch
from dccm.data.sources.parquet import Parquet
from dccm.data.sources.several import Several, Sources
from dccm.data.sources.sharded import open_shards
from dccm.data.sources.subset import of_split
from dccm.data.storage import is_address
from dccm.errors import UserError, choose, did_you_mean, require

_KINDS = (
    "a folder of images, a zip or tar archive, a parquet, .npy or .npz file, a list of paths (.txt, .csv), or an "
    "address such as s3://bucket/photos"
)

_GIVE = f"Give {_KINDS}."


def read_images(
    images: Any,
    *,
    image_size: int | Size | None = None,
    up_to: int | None = None,
    fit: Fit = "crop",
    channels: int | None = None,
    class_folders: bool = False,
    split: str = "",
    variant: str = "",
    data_root: str | Path | None = None,
    cache: str | Path | None = None,
    workers: int | None = None,
    processes: int | None = None,
    on_progress: OnImages | None = None,
    on_download: OnBytes | None = None,
    say: Callable[[str], None] | None = None,
) -> ImageSet:
    """Read images of any kind that `open_source` knows.

    Arrays are taken as they are. Everything else is decoded once, into a cache that later runs map into memory.

    Args:
        images: What `open_source` takes.
        image_size: Side to which images are brought, or height and width; None: arrays keep theirs, others get the
            nearest of 32, 64, 96.
        up_to: Without an image_size, others than arrays get the side of the largest (of up to 100) of them, but no more
            than this: what looks at larger images later can enlarge them itself.
        fit: How they are brought to it: crop what is too long, pad what is too short with black, or stretch.
        channels: 1 or 3 to turn them into grey or colour; None: grey only if every image is.
        class_folders: The first folder of each path or name is the image's true class; for evaluation alone.
        split: Only the images of this split, such as train or test.
        variant: Of a data set by name: other classes or images than those that the paper clusters.
        data_root: Folder with the files of a data set by name; None: in the user's cache folder.
        cache: Where prepared images are kept; None: the user's cache folder.
        workers: Threads that decode; None: one for each processor.
        processes: That list and prepare shards; None: this one alone.
        on_progress: Called with images done and images in all.
        on_download: Called with bytes downloaded and bytes in all.
        say: Called with a sentence that the user should read.
    """
    size = None if image_size is None else as_size(image_size)
    require_fit(fit)
    if isinstance(images, ImageSet) and not (class_folders or split or variant) and _fits(images, size, channels):
        return images
    source = open_source(
        images,
        class_folders=class_folders,
        split=split,
        variant=variant,
        data_root=data_root,
        processes=processes,
        on_download=on_download,
    )
    if isinstance(source, ArraySource):
        return _taken(source, size, fit, channels)
    wanted = Preparation(size or (_usual_size(source) if up_to is None else _own_size(source, up_to)), fit, channels)
    using: Any = {"cache": cache, "workers": workers, "processes": processes}
    return prepare(source, wanted, **using, on_progress=on_progress, say=say)


def open_source(
    images: Any,
    *,
    class_folders: bool = False,
    split: str = "",
    variant: str = "",
    data_root: str | Path | None = None,
    processes: int | None = None,
    on_download: OnBytes | None = None,
) -> Source:
    """The source that fits what the user gave.

    Args:
        images: An array (N, H, W) or (N, H, W, C), a tensor (N, C, H, W); a list of paths, of images of Pillow or of
            arrays; the path of a folder, an archive, a parquet or array file, or a list; an address that fsspec knows,
            or a pattern such as `shards/*.tar`, of shards; a data set of torch or Hugging Face; an `ImageSet`, a
            `Source`, the name of a data set, or several of all these as `Sources`.
        class_folders: As for `read_images`, and so are the others.
        split: Only the images of this split.
        variant: Of a data set by name.
        data_root: Folder with the files of a data set by name.
        processes: That list shards; None: this one alone.
        on_download: Called with bytes downloaded and bytes in all.
    """
    if isinstance(images, Sources):
        opening: Any = {"split": split, "variant": variant, "data_root": data_root, "on_download": on_download}
        opening["processes"] = processes
        return Several(images, [open_source(each, class_folders=class_folders, **opening) for each in images])
    name = data_set_name(images)
    require(
        bool(name) or not variant,
        f"variant is for data sets by name, and {_called(images)} is none, got '{variant}'. Leave it out.",
    )
    if name:
        source = open_benchmark(name, data_root, variant=variant, on_progress=on_download)
    else:
        chosen = _split_by_key(images, split)
        source, split = _opened(chosen, processes), "" if chosen is not images else split
    if class_folders:
        source.label_by_folder()
    return of_split(source, split) if split else source


def _called(images: Any) -> str:
    return str(images) if isinstance(images, str | Path) else f"what was given ({type(images).__name__})"


def _split_by_key(images: Any, split: str) -> Any:
    """One split of a `datasets.DatasetDict`; anything else as it is."""
    if not (hasattr(images, "column_names") and hasattr(images, "keys")):
        return images
    known = list(images.keys())
    require(
        bool(split), f"The data set has several splits: {', '.join(known)}. Choose one, for example dataset['train']."
    )
    return images[choose(split, known, "split", "dataset.keys()")]


def _opened(images: Any, processes: int | None) -> Source:
    if isinstance(images, Source):
        return images
    if isinstance(images, ImageSet):
        return _of_image_set(images)
    if isinstance(images, str) and is_address(images):
        return open_shards(images, processes)
    if isinstance(images, str | Path):
        return _open_path(Path(images), processes)
    require(not hasattr(images, "getexif"), "images must be several, got one image of Pillow. Give a list: [image].")
    if hasattr(images, "column_names"):
        return HuggingFace(images)
    if hasattr(images, "detach"):
        pixels = images.detach().cpu().numpy()
        return ArraySource(as_bytes(pixels.transpose(0, 2, 3, 1) if pixels.ndim == 4 else pixels))
    if hasattr(images, "to_numpy"):  # A column of a table.
        images = images.to_numpy()
    if isinstance(images, np.ndarray):
        named = images.ndim == 1 and images.dtype.kind in "OUT"  # Paths, or images of Pillow.
        return Torch(images.tolist()) if named else ArraySource(as_bytes(images))
    if isinstance(images, Iterable) and not (hasattr(images, "__len__") and hasattr(images, "__getitem__")):
        images = list(images)
    return Torch(images)


def _of_image_set(image_set: ImageSet) -> ArraySource:
    source = ArraySource(image_set.images, image_set.names, image_set.labels, image_set.splits)
    source.kind, source.place = image_set.stated.kind, image_set.stated.place or None
    source.skipped = image_set.skipped
    return source


def _open_path(path: Path, processes: int | None) -> Source:
    if str(path) == STDIN:
        return Listing(path)
    if has_magic(str(path)) and not path.exists():
        return open_shards(str(path), processes)
    meant = did_you_mean(str(path), DATASETS)
    require(path.exists(), f"There is no file, folder or data set {path}.{meant} {_GIVE}")
    require(
        path.is_dir() or path.is_file(), f"{path} is no regular file but a pipe or a device, without an end. {_GIVE}"
    )
    if path.is_dir():
        files = sorted([*path.glob("*.parquet"), *path.glob("data/*.parquet")])
        if _holds_archives(path):
            return open_shards(str(path), processes)
        return Parquet(files, path) if files else Folder(path)
    name = path.name.lower()
    if name.endswith((".npy", ".npz")):
        return open_array_file(path)
    if name.endswith(".parquet"):
        return Parquet([path], path)
    if name.endswith(".zip"):
        return Zip(path)
    if name.endswith(TAR_SUFFIXES):
        return Tar(path)
    if name.endswith((".txt", ".csv")):
        return Listing(path)
    raise UserError(f"{path} is of no kind that can be read. {_GIVE}")


def _holds_archives(folder: Path) -> bool:
    """Whether tar archives lie in a folder, and neither images nor folders nor parquet files beside them."""
    known = (*SUFFIXES, ".parquet")
    try:
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        names = [entry.name.lower() for entry in entries]
        if not any(name.endswith(TAR_SUFFIXES) for name in names) or any(name.endswith(known) for name in names):
            return False
        return not any(entry.is_dir() for entry in entries)
    except OSError as error:
        require_means(error)
        return False  # Whoever lists the folder says what is wrong.


def _fits(image_set: ImageSet, size: Size | None, channels: int | None) -> bool:
    """Whether images are already as they are wanted."""
    shape = image_set.images.shape
    return image_set.images.dtype == np.uint8 and size in (None, shape[1:3]) and channels in (None, *shape[3:])


def _taken(source: ArraySource, size: Size | None, fit: Fit, channels: int | None) -> ImageSet:
    """An array, changed only where that was asked for."""
    # Grey before it is resized, as files are.
    images = with_channels(source.images, channels)
    images = images if size is None else resized(images, size, fit)
    duplicates = find_duplicates(content_hashes(images), source.names)
    origin = Origin(source.kind, source.place or "")
    return ImageSet(images, source.names, source.labels, source.skipped, duplicates, source.splits, origin)


def _usual_size(source: Source) -> Size:
    """The paper's side nearest to the median shorter side of some of the images."""
    sides = [header.side for header in sampled(source)]
    usual = float(np.median(sides)) if sides else USUAL_SIDES[0]
    side = min(USUAL_SIDES, key=lambda known: abs(known - usual))
    return side, side


def _own_size(source: Source, up_to: int) -> Size:
    """The largest shorter side of some of the images, within bounds."""
    side = min(up_to, max([SMALLEST_SIDE, *(header.side for header in sampled(source))]))
    return side, side
