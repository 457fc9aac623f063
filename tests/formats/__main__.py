"""Keep a run as this version writes it, for the tests of later ones: `python -m tests.formats` before each release."""

import shutil
from pathlib import Path

import dccm
from dccm.data.synthetic import bars

KEPT = Path(__file__).parent
LEFT_OUT = ("checkpoints", "report.html", "run.lock")
SETTINGS = {"width": 0.0625, "critic_positions": 1, "starts": 1, "mini_batch": 8, "batch_size": 24, "threads": 1}
METHODS = {"dccm": SETTINGS | {"epochs": 2}, "kmeans": {}}


def keep(method: str, output: Path) -> Path:
    """Cluster 24 images of bars, and leave the small files of the run."""
    dccm.cluster(bars(24, side=8).images, 3, method, output=output, settings=METHODS[method])
    for path in output.iterdir():
        if path.name in LEFT_OUT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return output


def main() -> None:
    """A run by `dccm` and one by `kmeans`, in a folder of this version."""
    for method in METHODS:
        folder = KEPT / dccm.__version__ / method
        shutil.rmtree(folder, ignore_errors=True)
        keep(method, folder)


if __name__ == "__main__":
    main()
