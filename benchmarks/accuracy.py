"""Scores of a preset over seeds, last epoch, beside k-means and agglomerative clustering of the pixels.

python -m benchmarks.accuracy digits --preset fast --dataset digits
python -m benchmarks.accuracy mnist.parquet --split test --preset fast --dataset mnist
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans

from benchmarks.datasets import read
from dccm.config import parse_assignments
from dccm.data.images import ImageSet
from dccm.evaluation.metrics import scores
from dccm.progress import Display
from dccm.runs.config import make_config
from dccm.runs.fitting import fit

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run all seeds, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--split")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--dataset", default="")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    found = read(arguments.source, arguments.split)
    rows = []
    for seed in arguments.seeds:
        overrides = parse_assignments(arguments.settings) | {"seed": seed}
        config = make_config("dccm", arguments.preset, arguments.dataset, overrides)
        with Display() as display:
            fitted = fit(found.images, config, on_progress=display.training)
        predicted = fitted.model.predict_proba(found.images).argmax(axis=1)
        last = fitted.history[-1]
        rows.append(
            {"seed": seed, "seconds": round(fitted.seconds, 1), "passes": last["passes"], "warnings": last["warnings"]}
            | scores(found.labels, predicted)  # type: ignore[arg-type]
        )
        print(json.dumps(rows[-1]), flush=True)
    report = {
        "source": Path(arguments.source).stem,
        "images": len(found.images),
        "preset": arguments.preset,
        "settings": arguments.settings,
        "runs": rows,
        "mean": {key: float(np.mean([row[key] for row in rows])) for key in ("acc", "nmi", "ari", "seconds")},
        "deviation": {key: float(np.std([row[key] for row in rows])) for key in ("acc", "nmi", "ari")},
        "on pixels": on_pixels(found, make_config("dccm", arguments.preset, arguments.dataset).data.n_clusters),
    }
    print(json.dumps(report, indent=1))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"accuracy_{report['source']}_{arguments.preset}.json").write_text(json.dumps(report, indent=1) + "\n")


def on_pixels(found: ImageSet, clusters: int) -> dict[str, dict[str, float]]:
    """Scores and seconds of two classical methods on the same pixels."""
    pixels = found.images.reshape(len(found.images), -1) / 255
    methods: dict[str, Callable[[], np.ndarray]] = {
        "k-means": lambda: KMeans(clusters, n_init=10, random_state=0).fit_predict(pixels),
        "agglomerative": lambda: AgglomerativeClustering(clusters).fit_predict(pixels),
    }
    table = {}
    for name, method in methods.items():
        started = time.monotonic()
        predicted = method()
        table[name] = scores(found.labels, predicted) | {"seconds": time.monotonic() - started}  # type: ignore[arg-type]
    return table


if __name__ == "__main__":
    main()
