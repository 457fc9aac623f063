"""DEC of this package against ClustPy's: same images, network, mini-batches and epochs, taking turns.

python -m benchmarks.clustpy_dec digits --pretraining 100 --clustering 150
python -m benchmarks.clustpy_dec mnist.parquet --count 10000 --pretraining 30 --clustering 30

Runs in an environment of its own that has ClustPy, which is no dependency of the package:

python -m venv clustpy && clustpy/bin/pip install -r requirements.txt pandas tqdm
clustpy/bin/pip install --no-deps torchvision clustpy==0.0.3 && clustpy/bin/pip install --no-deps --editable .

Adds to benchmarks/results/clustpy_dec.json.
"""

import argparse
import json
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.classical import alone
from benchmarks.datasets import read, some_of
from dccm.evaluation.metrics import scores
from dccm.runs.config import make_config
from dccm.runs.fitting import fit

RESULT = Path(__file__).parent / "results" / "clustpy_dec.json"
MINI = 256
STUBS = ("nms", "qnms")


def by_dccm(images: np.ndarray, *, clusters: int, seed: int, pretraining: int, clustering: int) -> np.ndarray:
    """Labels of ours."""
    epochs = pretraining + clustering
    settings = {"n_clusters": clusters, "seed": seed, "epochs": epochs, "pretraining": pretraining / epochs}
    fitted = fit(images, make_config("dec", overrides=settings | {"mini_batch": MINI, "device": "cpu"}))
    return np.asarray(fitted.model.predict_proba(images).argmax(axis=1))


def by_clustpy(
    images: np.ndarray, *, clusters: int, seed: int, pretraining: int, clustering: int, scaling: str
) -> np.ndarray:
    """Labels of ClustPy's, with its own defaults but for the epochs."""
    define_stubs()
    import torch
    from clustpy.deep import DEC  # type: ignore[import-not-found]

    rows = images.reshape(len(images), -1).astype(np.float32) / 255
    if scaling == "standard":
        rows = (rows - rows.mean()) / rows.std()
    epochs = {"pretrain_epochs": pretraining, "clustering_epochs": clustering}
    system = DEC(clusters, batch_size=MINI, device=torch.device("cpu"), random_state=seed, **epochs)
    return np.asarray(system.fit_predict(rows))


@cache
def define_stubs() -> Any:
    """Operators that torchvision describes when it is imported, and lacks beside the CPU build of torch.

    What is returned holds them; the cache keeps it.
    """
    from torch.library import Library

    operators = Library("torchvision", "DEF")
    for name in STUBS:
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return operators


def main() -> None:
    """Take turns over the seeds, print means and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--count", type=int)
    parser.add_argument("--pretraining", type=int, default=100, help="epochs of the auto-encoder")
    parser.add_argument("--clustering", type=int, default=150, help="epochs of the clustering")
    parser.add_argument("--scaling", choices=["unit", "standard"], default="unit", help="of the pixels for ClustPy")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    found = some_of(read(arguments.source), arguments.count)
    assert found.labels is not None
    length = {"pretraining": arguments.pretraining, "clustering": arguments.clustering}
    contestants: dict[str, Any] = {"dccm": by_dccm, "ClustPy": partial(by_clustpy, scaling=arguments.scaling)}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    clusters = len(np.unique(found.labels))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        np.save(path, found.images)
        for seed in arguments.seeds:
            for name, contestant in contestants.items():
                work = partial(contestant, clusters=clusters, seed=seed, **length)
                outcome = alone(work, path, len(found.images))
                run = {"seed": seed, "seconds": outcome.seconds, "cpu seconds": outcome.cpu_seconds}
                runs[name].append(run | scores(found.labels, outcome.labels))
                print(name, json.dumps(runs[name][-1]), flush=True)
    means = {
        name: {
            key: float(np.mean([run[key] for run in each])) for key in ("acc", "nmi", "ari", "seconds", "cpu seconds")
        }
        for name, each in runs.items()
    }
    row = {
        "source": Path(arguments.source).stem,
        "images": len(found.images),
        **length,
        "scaling for ClustPy": arguments.scaling,
        "means": means,
        "times faster": means["ClustPy"]["seconds"] / means["dccm"]["seconds"],
        "runs": runs,
    }
    print(json.dumps({key: row[key] for key in ("means", "times faster")}, indent=1))
    rows = json.loads(RESULT.read_text()) if RESULT.is_file() else []
    RESULT.write_text(json.dumps([*rows, row], indent=1) + "\n")


if __name__ == "__main__":
    main()
