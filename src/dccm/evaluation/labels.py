"""True labels from a file, matched to images; for evaluation alone."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.errors import UserError, require


def read_labels(path: Path, names: list[str]) -> npt.NDArray[Any]:
    """One label for each named image.

    Args:
        path: CSV with the columns path and label, in any order of rows; or `.npy` in the order of the images.
        names: Names of the images, as in the assignments.
    """
    require(path.is_file(), f"There is no file {path}. Give a CSV with the columns path and label, or an .npy array.")
    labels = _array(path) if path.suffix == ".npy" else _by_name(path, names)
    require(
        labels.shape == (len(names),),
        f"labels must be one for each of the {len(names)} images, {path} holds {labels.shape}. Check the file.",
    )
    return labels


def _array(path: Path) -> npt.NDArray[Any]:
    try:
        labels: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} cannot be read as an array ({error}). Save it anew with numpy.save.") from error
    return labels


def _by_name(path: Path, names: list[str]) -> npt.NDArray[Any]:
    try:
        with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            known = {row["path"]: row["label"] for row in csv.DictReader(file)}
    except (KeyError, csv.Error) as error:
        raise UserError(f"{path} must have the columns path and label in its first line. Add them.") from error
    missing = [name for name in names if name not in known]
    require(
        not missing,
        f"{path} has no label for {len(missing)} of the {len(names)} images, the first is {missing[:1]}. Add them.",
    )
    return np.array([known[name] for name in names])
