"""True classes of the images of a run, where its source states them; a run itself keeps none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.errors import UserError
from dccm.exporting.content import Label
from dccm.exporting.originals import Originals, stored_source
from dccm.runs.directory import RunDirectory

_BY_FOLDER = ("folder", "zip archive", "tar archive")
"""Sources that know no classes but those of their folders, if `--class-folders` said so."""


def known_labels(directory: RunDirectory, names: Sequence[str], originals: Originals) -> list[Label] | None:
    """A class for each image; None where nothing states any.

    Args:
        directory: The run.
        names: Of its images.
        originals: The images; they are opened only if they may state classes.
    """
    stored = stored_source(directory)
    if stored is None or not stored.place:
        return None
    if stored.kind in _BY_FOLDER:
        scored = directory.result.is_file() and directory.read_result().scores is not None
        return _first_folders(names) if scored else None
    try:
        labels = originals.source.labels
    except UserError:  # It is gone; formats that need it say so.
        return None
    if labels is None:
        return None
    plain = plain_labels(labels)
    places = (originals.place_of(row) for row in range(len(names)))
    return [plain[place] if place >= 0 else None for place in places]


def _first_folders(names: Sequence[str]) -> list[Label] | None:
    """The first folder of each name, if they are not all in one."""
    paths = (name.replace("\\", "/") for name in names)
    labels: list[Label] = [path.partition("/")[0] if "/" in path else "" for path in paths]
    return labels if len(set(labels)) > 1 else None


def plain_labels(labels: npt.NDArray[Any]) -> list[Label]:
    """Classes as whole numbers or text."""
    whole = np.issubdtype(labels.dtype, np.integer)
    return [int(label) if whole else str(label) for label in labels.tolist()]
