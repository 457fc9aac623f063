"""Scores of all methods that take vectors, on the features of one pretrained encoder, over seeds.

python -m benchmarks.heads fruits10_64.parquet -k 10
python -m benchmarks.heads cifar10.parquet -k 10 --split test --methods scan dccm --set start=kmeans

Runs are added to benchmarks/results/heads.json; those that are there are not repeated. True labels score, nothing else.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import Halves
from dccm.config import parse_assignments
from dccm.data.read import read_images
from dccm.evaluation.metrics import scores
from dccm.files import write_atomically
from dccm.methods import METHODS
from dccm.networks.pretrained import open_encoder
from dccm.runs.config import make_config
from dccm.runs.features import inputs_of
from dccm.runs.fitting import fit

RESULTS = Path(__file__).parent / "results" / "heads.json"
ENCODER = "efficientnet-lite0"
Run = dict[str, Any]


def main() -> None:
    """Make the runs that are missing, and print all that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("-k", type=int, required=True)
    parser.add_argument("--split")
    parser.add_argument("--methods", nargs="+", default=[name for name, kind in METHODS.items() if kind.takes_vectors])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--preset")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    vectors, labels = read(arguments.source, arguments.split)
    for key in wanted(arguments):
        if not any(key.items() <= run.items() for run in stored()):
            write_atomically(RESULTS, json.dumps([*stored(), measured(vectors, labels, key)], indent=1) + "\n")
        print(next(run for run in stored() if key.items() <= run.items()), flush=True)


def read(source: Path, split: str | None) -> tuple[Halves, np.ndarray]:
    """Vectors as methods see them, (N, 1, 1, D), and labels for the scores."""
    if source.suffix == ".npz":  # Vectors that were made before.
        with np.load(source) as file:
            return file["features"].astype(np.float16)[:, np.newaxis, np.newaxis], file["labels"]
    encoder = open_encoder(ENCODER)
    image_set = read_images(source, split=split or "", up_to=encoder.preprocessing.side)
    vectors, _ = inputs_of(image_set, encoder)
    assert image_set.labels is not None
    return vectors, np.asarray(image_set.labels)  # type: ignore[return-value]


def wanted(arguments: argparse.Namespace) -> Iterator[Run]:
    """What each run is known by."""
    name = "/".join(filter(None, (arguments.source.stem, arguments.split)))
    for method in arguments.methods:
        preset = make_config(method, arguments.preset, overrides={"encoder": ENCODER}).preset
        for seed in arguments.seeds:
            own = {"preset": preset, "settings": arguments.settings, "seed": seed}
            yield {"source": name, "k": arguments.k, "method": method} | own


def measured(vectors: Halves, labels: np.ndarray, key: Run) -> Run:
    """One run and its scores, last epoch."""
    given = parse_assignments(key["settings"]) | {"n_clusters": key["k"], "seed": key["seed"], "encoder": ENCODER}
    fitted = fit(vectors, make_config(key["method"], key["preset"], overrides=given))
    found = scores(labels, fitted.model.predict_proba(vectors).argmax(axis=1))
    return key | {"images": len(vectors), "seconds": round(fitted.seconds, 1)} | found


def stored() -> list[Run]:
    """All runs so far."""
    runs: list[Run] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return runs


if __name__ == "__main__":
    main()
