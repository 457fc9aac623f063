"""True labels from a file, matched to images; for evaluation alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.errors import UserError, require
from dccm.files import read_csv


def read_labels(path: Path, names: Sequence[str]) -> npt.NDArray[Any]:
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


def _by_name(path: Path, names: Sequence[str]) -> npt.NDArray[Any]:
    rows = read_csv(path, ("path", "label"), "write a first line 'path,label', then one line per image")
    known = {row["path"]: row["label"] for row in rows}
    missing = [name for name in names if name not in known]
    require(
        not missing,
        f"{path} has no label for {len(missing)} of the {len(names)} images, the first is {missing[:1]}. Add them.",
    )
    return np.array([known[name] for name in names])
