"""The curve of one preset on one data set within a budget: scores against passes and minutes.

python -m benchmarks.curves cifar10.parquet --dataset cifar10 --preset fast --budget minutes:30

Labels are used for the curve only: on 5,000 fixed images while training (the clock stands still meanwhile), on all
images at the end. Writes benchmarks/results/curves/<data>_<preset>_<seed>.json.
"""

import argparse
import json
from pathlib import Path

import torch

from benchmarks.cifar10_presets import Curve, measured
from benchmarks.datasets import read
from dccm.config import parse_assignments, parse_budget
from dccm.machine import keep_memory
from dccm.runs.config import make_config
from dccm.runs.fitting import fit, new_model

RESULTS = Path(__file__).parent / "results" / "curves"


def main() -> None:
    """Train, score and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--dataset", default="", help="table of the preset; none: the part for any images")
    parser.add_argument("--budget", default="minutes:30")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--name", help="in the file's name, instead of the preset's")
    arguments = parser.parse_args()
    keep_memory()
    found = read(arguments.source)
    assert found.labels is not None
    overrides = {"n_clusters": len(set(found.labels.tolist())), "seed": arguments.seed}
    overrides |= parse_budget(arguments.budget) | parse_assignments(arguments.settings)
    config = make_config("dccm", arguments.preset, arguments.dataset, overrides)
    model = new_model(found.images, config)
    curve = Curve(model, found)
    fitted = fit(found.images, config, model=model, on_progress=curve)
    final = {"passes": fitted.history[-1]["passes"]} | measured(model, found.images, found.labels)
    result = {
        "source": Path(arguments.source).stem,
        "preset": arguments.preset,
        "budget": arguments.budget,
        "settings": arguments.settings,
        "seed": arguments.seed,
        "threads": torch.get_num_threads(),
        "curve": curve.points,
        "final": final,
        "last epoch": fitted.history[-1],
    }
    print(json.dumps(final), flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = f"{result['source']}_{arguments.name or arguments.preset}_{arguments.seed}.json"
    (RESULTS / name).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
