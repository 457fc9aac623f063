"""Keep a run as this version writes it, for the tests of later ones: `python -m tests.formats` before each release."""

import shutil
from pathlib import Path

import dccm
from dccm.data.synthetic import bars

LEFT_OUT = ("checkpoints", "report.html", "run.lock")
SETTINGS = {"width": 0.0625, "critic_positions": 1, "starts": 1, "mini_batch": 8, "batch_size": 24, "threads": 1}


def main() -> None:
    """Cluster 24 images of bars by `dccm` and by `kmeans`, and keep the small files."""
    for method, settings in (("dccm", SETTINGS | {"epochs": 2}), ("kmeans", {})):
        folder = Path(__file__).parent / dccm.__version__ / method
        shutil.rmtree(folder, ignore_errors=True)
        dccm.cluster(bars(24, side=8).images, 3, method, output=folder, settings=settings)
        for path in folder.iterdir():
            if path.name in LEFT_OUT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main()
