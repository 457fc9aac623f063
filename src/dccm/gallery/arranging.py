"""A map on which neighbours stay neighbours (t-SNE): it takes minutes, so another process makes it, and it is kept."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from zlib import crc32

import numpy as np

from dccm.arrays import Floats
from dccm.errors import UserError
from dccm.files import whole_file

_POLITE = 10
"""How much the other process gives way to those that people wait for."""


class Arrangement:
    """Places of images that are there at once if they were computed before, and else some time later.

    Args:
        folder: Of the cache, where they are kept.
        points: What is arranged, (N, D).
    """

    def __init__(self, folder: Path, points: Floats) -> None:
        self._path = folder / f"{len(points)}-{crc32(np.ascontiguousarray(points).data):08x}.npy"
        self.places = self._read(len(points))
        if self.places is None:
            Thread(target=self._compute, args=(points,), daemon=True).start()

    def _compute(self, points: Floats) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="dccm-map-") as folder:
            given = Path(folder) / "points.npy"
            np.save(given, points)
            command = [sys.executable, "-m", "dccm.gallery.arranging", str(given), str(self._path)]
            if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0:
                self.places = self._read(len(points))

    def _read(self, count: int) -> Floats | None:
        try:
            places: Floats = np.load(self._path, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return places if places.shape == (count, 2) and places.dtype == np.float32 else None


def arrange(given: Path, made: Path) -> None:
    """Read points from a file and write their places into another."""
    from dccm.experiments.maps import flat_map

    if hasattr(os, "nice"):
        os.nice(_POLITE)
    places = flat_map(np.load(given, allow_pickle=False)).places.astype(np.float32)
    try:
        with whole_file(made) as file:
            np.save(file, places)
    except UserError as error:  # The map of principal components stays.
        sys.exit(str(error))


if __name__ == "__main__":
    arrange(Path(sys.argv[1]), Path(sys.argv[2]))
