"""Tiny-ImageNet (Le and Yang, 2015): the folder as published, or its zip archive read in place."""

from pathlib import Path

import numpy as np

from dccm.data.published.download import Remote
from dccm.data.published.official import Benchmark, Layout
from dccm.data.published.trees import FolderTree, LabelledFiles, Tree, ZipTree
from dccm.errors import require

_LAYOUT = Layout(
    "tiny-imagenet-200", "tiny-imagenet-200.zip", "wnids.txt", ("tiny_imagenet", "tiny-imagenet", "TinyImageNet")
)
_ANNOTATIONS = "val/val_annotations.txt"


def read_tiny_imagenet(path: Path, variant: str = "") -> LabelledFiles:
    """The training images, which the paper clusters; in the variant `val` the validation images too, as `test`."""
    tree = FolderTree(path) if path.is_dir() else ZipTree(path, _LAYOUT.folder)
    wnids = sorted(tree.text("wnids.txt").split())
    require(bool(wnids), f"{path} must hold wnids.txt, which lists the classes, and does not. Get the official files.")
    classes = {wnid: label for label, wnid in enumerate(wnids)}
    labelled = _train(tree, wnids)
    count = len(labelled)
    if variant == "val":
        labelled += _validation(tree, classes)
    names, owners = zip(*labelled)
    return LabelledFiles(
        tree,
        names,
        np.array([classes[wnid] for wnid in owners]),
        _class_names(tree, wnids),
        np.repeat(["train", "test"], [count, len(labelled) - count]) if variant == "val" else None,
    )


def _train(tree: Tree, wnids: list[str]) -> list[tuple[str, str]]:
    """Path and class of each training image."""
    found = {wnid: tree.images(f"train/{wnid}/images") for wnid in wnids}
    empty = [wnid for wnid, names in found.items() if not names]
    require(
        not empty,
        f"{tree.path} must hold JPEG files in train/{'/images, train/'.join(empty[:3])}/images, and has none there "
        f"({len(empty)} of {len(wnids)} classes are without). Get the official files.",
    )
    return [(name, wnid) for wnid, names in found.items() for name in names]


def _validation(tree: Tree, classes: dict[str, int]) -> list[tuple[str, str]]:
    """Path and class of each validation image, in the order of the list that comes with them."""
    rows = [line.split("\t") for line in tree.text(_ANNOTATIONS).splitlines() if line.strip()]
    require(
        bool(rows) and all(len(row) > 1 and row[1] in classes for row in rows),
        f"{tree.path} must hold {_ANNOTATIONS}, with the name of a file and one of its {len(classes)} classes in "
        "each line. Get the official files.",
    )
    names = set(tree.images("val/images"))
    missing = [row[0] for row in rows if f"val/images/{row[0]}" not in names]
    require(
        not missing,
        f"{tree.path} must hold all files that {_ANNOTATIONS} lists, and lacks {len(missing)} of {len(rows)}, such as "
        f"val/images/{missing[0] if missing else ''}. Get the official files.",
    )
    return [(f"val/images/{row[0]}", row[1]) for row in rows]


def _class_names(tree: Tree, wnids: list[str]) -> list[str]:
    """Names for the numbers of WordNet, as far as words.txt has them."""
    lines = (line.partition("\t") for line in tree.text("words.txt").splitlines())
    words = {wnid: name for wnid, _, name in lines}
    return [words.get(wnid, wnid) for wnid in wnids]


TINY_IMAGENET = Benchmark(
    _LAYOUT.locate,
    read_tiny_imagenet,
    _LAYOUT.absent(),
    (Remote(f"http://cs231n.stanford.edu/{_LAYOUT.archive}", "90528d7ca1a48142e341f4ef8d21d0de", 248_100_043),),
    variants=("val",),
)
