"""What the model said of all images at some moments of a run: what figures of the paper are drawn from."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dccm.arrays import Floats
from dccm.errors import UserError
from dccm.files import write_atomically

_UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
"""What the readers of NumPy files raise when the content is not theirs."""


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
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{milestone.images:012d}.npz", buffer.getvalue())


def read_milestones(folder: Path) -> Iterator[Milestone]:
    """All that was kept, from the start of the run on; nothing if nothing was."""
    for path in _files(folder):
        with _reading(path), np.load(path, allow_pickle=False) as arrays:
            feature = arrays.get("feature")
            found = Milestone(int(path.stem), float(arrays["epoch"]), arrays["prediction"], feature)
            _check(found.prediction.ndim == 2, f"prediction must be (N, K), got {found.prediction.shape}")
            _check(feature is None or len(feature) == len(found.prediction), "feature must have a row for each image")
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


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        reason = f"{error}".replace("\n", " ") or type(error).__name__
        raise UserError(f"{path} is broken ({reason}); take a sound copy, or begin the run anew.") from error


def _check(sound: bool, reason: str) -> None:
    if not sound:
        raise ValueError(reason)
