"""ImageNet-10 and ImageNet-dog-15: classes of ImageNet (Deng et al., CVPR 2009) that Chang et al. (ICCV 2017) chose."""

import json
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np

from dccm.data.published.official import Benchmark
from dccm.data.published.trees import FolderTree, LabelledFiles
from dccm.errors import require

_HOMES = ("", "train", "ILSVRC/Data/CLS-LOC/train", "imagenet/train", "ILSVRC2012/train", "ImageNet/train")
"""Where the folders of the classes may be below the root."""


def classes(subset: str) -> dict[str, str]:
    """The classes of a subset in the order of their labels: number in WordNet and name.

    The papers name no classes; these are the ones that later work on the same subsets uses.
    """
    text = (files("dccm.data.published") / "wnids.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)[subset]
    return found


def locate_imagenet(subset: str, root: Path) -> Path | None:
    """The folder that holds the most of the classes of a subset."""
    wnids = classes(subset)
    homes = [root / home for home in (*_HOMES, subset)]
    counts = [sum((home / wnid).is_dir() for wnid in wnids) for home in homes]
    return homes[counts.index(max(counts))] if any(counts) else None


def read_imagenet(subset: str, folder: Path, variant: str = "") -> LabelledFiles:
    """All images of the classes of a subset: 1,300 of each in the full training set."""
    del variant  # There is one.
    tree = FolderTree(folder)
    wnids = classes(subset)
    found = {wnid: tree.images(wnid) for wnid in wnids}
    empty = [wnid for wnid, names in found.items() if not names]
    require(
        not empty,
        f"{folder} must hold a folder of JPEG files for each class of {subset}, and has none for {', '.join(empty)}. "
        "Unpack these classes of ImageNet's training set into it.",
    )
    labels = np.repeat(np.arange(len(wnids)), [len(names) for names in found.values()])
    return LabelledFiles(tree, [name for names in found.values() for name in names], labels, [*wnids.values()])


def _benchmark(subset: str) -> Benchmark:
    first = next(iter(classes(subset)))
    return Benchmark(
        partial(locate_imagenet, subset),
        partial(read_imagenet, subset),
        "it cannot be downloaded, since ImageNet asks for a registration. Register at https://image-net.org, get "
        "ILSVRC2012_img_train.tar, unpack it and the archives of the classes in it, so that there is a folder "
        f"train/{first} with its JPEG files and so on, and give the folder that holds train as data_root",
    )


IMAGENET10 = _benchmark("imagenet10")
IMAGENET_DOG15 = _benchmark("imagenet_dog15")
