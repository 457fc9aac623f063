"""What the model said of all images at some moments of a run: what figures of the paper are drawn from."""

import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dccm.arrays import Floats
from dccm.documents import check, named_if_broken
from dccm.files import write_atomically
from dccm.npy import read_arrays


class Milestone(NamedTuple):
    """What the model said at one moment of a run."""

    images: int
    """Images in all updates before it; they name the file."""
    epoch: float
    """Epochs done."""
    prediction: Floats
    """Prediction features of all images, in their order, (N, K)."""
    feature: Floats | None
    """Deep features, (N, D); only of the start, the middle and the end of a run."""

    @property
    def passes(self) -> float:
        """Gradient passes over the images before it."""
        return self.images / len(self.prediction)


def write_milestone(folder: Path, milestone: Milestone) -> None:
    """Write one file for this moment; one of the same moment gives way to it."""
    arrays = {"epoch": np.float64(milestone.epoch), "prediction": milestone.prediction}
    if milestone.feature is not None:
        arrays["feature"] = milestone.feature
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    with suppress(FileNotFoundError):  # Of the run's folder: the next line says it.
        folder.mkdir(exist_ok=True)
    write_atomically(folder / f"{milestone.images:012d}.npz", buffer.getvalue())


def read_milestones(folder: Path) -> Iterator[Milestone]:
    """All that was kept, from the start of the run on; nothing if nothing was."""
    for path in _files(folder):
        with named_if_broken(path, "take a sound copy, or begin the run anew"):
            arrays = read_arrays(path)
            feature = arrays.get("feature")
            found = Milestone(int(path.stem), float(arrays["epoch"]), arrays["prediction"], feature)
            check(found.prediction.ndim == 2, f"prediction must be (N, K), got {found.prediction.shape}")
            check(feature is None or len(feature) == len(found.prediction), "feature must have a row for each image")
        yield found


def forget_milestones(folder: Path, after: int | None) -> None:
    """Delete what was kept when more images than these were learnt from; None: all of it.

    Args:
        folder: Where it is.
        after: Images in all updates before the checkpoint that a run goes on from.
    """
    for path in _files(folder):
        if after is None or int(path.stem) > after:
            path.unlink()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.npz") if path.stem.isdigit())
