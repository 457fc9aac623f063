"""What k-means finds in features: before and after training, with the features as they are and in other scales.

python -m benchmarks.readouts cifar10.parquet gan decnn --count 20000 --budget passes:1

Tells whether a method's score is for want of training or for how its features are read. Labels are read for the scores
only. Adds to benchmarks/results/readouts.json; a run of the same system, images and budget is replaced.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.baselines import keep, some_of
from benchmarks.datasets import read
from dccm.arrays import Floats
from dccm.config import parse_budget
from dccm.evaluation.metrics import scores
from dccm.grouping.readout import KMeansReadout
from dccm.progress import Display
from dccm.runs.config import make_config
from dccm.runs.fitting import fit, new_model

RESULT = Path(__file__).parent / "results" / "readouts.json"


def in_scales(features: Floats) -> dict[str, Floats]:
    """The features as they are, at unit length, and with each dimension's deviation brought to 1."""
    centred = features - features.mean(axis=0)
    return {
        "as they are": features,
        "unit length": features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12),
        "deviation 1": centred / np.maximum(features.std(axis=0), 1e-6),
    }


def found_in(features: Floats, labels: np.ndarray, clusters: int, seed: int) -> dict[str, dict[str, float]]:
    """Scores of k-means in each scale."""
    table = {}
    for scale, rows in in_scales(features).items():
        readout = KMeansReadout(clusters)
        readout.fit(rows.copy(), seed)
        centres = readout.centres.numpy()
        nearest = ((centres**2).sum(axis=1) - 2 * rows @ centres.T).argmin(axis=1)
        values = scores(labels, nearest)
        table[scale] = {name: round(values[name], 4) for name in ("acc", "nmi", "ari")}
        print(scale, json.dumps(table[scale]), flush=True)
    return table


def main() -> None:
    """Each system without training and with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("systems", nargs="+")
    parser.add_argument("--dataset", default="", help="table of the preset; none: the part for any images")
    parser.add_argument("--budget", required=True, help="minutes:M or passes:P")
    parser.add_argument("--count", type=int, help="so many images, drawn at random; none: all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    found = some_of(read(arguments.source), arguments.count)
    assert found.labels is not None
    clusters = len(np.unique(found.labels))
    settings = {"n_clusters": clusters, "seed": arguments.seed} | parse_budget(arguments.budget)
    for system in arguments.systems:
        config = make_config(system, "paper", arguments.dataset, settings)
        model = new_model(found.images, config)
        row: dict[str, Any] = {"source": Path(arguments.source).stem, "system": system, "images": len(found.images)}
        row |= {"budget": arguments.budget, "seed": arguments.seed}
        row["untrained"] = found_in(model.transform(found.images), found.labels, clusters, arguments.seed)
        with Display() as display:
            fitted = fit(found.images, config, model=model, on_progress=display.training)
        row["passes"] = round(fitted.history[-1]["passes"], 1)
        row["trained"] = found_in(model.transform(found.images), found.labels, clusters, arguments.seed)
        keep(RESULT, row, ("source", "system", "images", "budget", "seed"))


if __name__ == "__main__":
    main()
