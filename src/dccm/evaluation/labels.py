"""True labels from a file, matched to images; for evaluation alone."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.data.names import shortened
from dccm.documents import named_if_broken
from dccm.errors import require
from dccm.files import read_csv
from dccm.npy import map_array

_KINDS = "biufUS"
"""Of arrays that can name classes: whole numbers, fractions, texts."""


def read_labels(path: Path, names: Sequence[str], place: Path | None = None) -> npt.NDArray[Any]:
    """One label for each named image.

    Args:
        path: CSV with the columns path and label, in any order of rows; or `.npy` in the order of the images.
        names: Names of the images, as in the assignments.
        place: Folder below which the names are paths; None: they are in no folder, or it is not known.
    """
    require(path.is_file(), f"There is no file {path}. Give a CSV with the columns path and label, or an .npy array.")
    labels = _array(path) if path.suffix == ".npy" else _by_name(path, names, place)
    require(
        labels.shape == (len(names),),
        f"labels must be one for each of the {len(names)} images, {path} holds {labels.shape}. Check the file.",
    )
    require(
        labels.dtype.kind in _KINDS,
        f"labels must be numbers or texts, {path} holds {labels.dtype}. Save it anew with numpy.save.",
    )
    unknown = np.flatnonzero(labels != labels)  # Not a number, which is not even equal to itself.
    require(
        not len(unknown),
        f"labels must be known for all images, {path} holds NaN for {len(unknown)} of {len(names)}, "
        f"first in row {unknown[:1]}. Give every image a class.",
    )
    return labels


def _array(path: Path) -> npt.NDArray[Any]:
    with named_if_broken(path, "save it anew with numpy.save"):
        return np.array(map_array(path))


def _by_name(path: Path, names: Sequence[str], place: Path | None) -> npt.NDArray[Any]:
    repair = "write a first line 'path,label', then one line per image"
    stated = {row["path"]: row["label"] for row in read_csv(path, ("path", "label"), repair)}
    labels = [stated.get(name) for name in names]
    if None in labels:  # Spelt otherwise than in the run.
        labels = _by_place(stated, names, path, place)
    missing = [shortened(name) for name, label in zip(names, labels) if not label]
    require(
        not missing,
        f"{path} has no label for {len(missing)} of the {len(names)} images, the first is {missing[:1]}. Add them.",
    )
    return np.array(labels)


def _by_place(stated: dict[str, str], names: Sequence[str], path: Path, place: Path | None) -> list[str | None]:
    """Labels of images whose paths may be spelt from another folder: the file's own, the current one, or the root."""
    known: dict[str, str] = {}
    for name, label in stated.items():
        for spelling in _spellings(name, [path.parent.resolve(), Path.cwd()]):
            known.setdefault(spelling, label)
    folders = [] if place is None else [place]
    return [next((known[way] for way in _spellings(name, folders) if way in known), None) for name in names]


def _spellings(name: str, folders: Sequence[Path]) -> Iterator[str]:
    """A path as it stands, without detours, and from each of some folders; one from the root stays as it is."""
    yield name
    yield os.path.normpath(name)
    for folder in folders:
        yield os.path.normpath(folder / name)
