"""The systems that DCCM is compared with, one after the other: ACC, NMI, ARI, and what the probe says of the encoder.

python -m benchmarks.baselines cifar10.parquet ae vae dac dec:conv --budget minutes:6 --probe
python -m benchmarks.baselines mnist.parquet dec dac --dataset mnist
python -m benchmarks.baselines mnist.parquet dec --dataset mnist --count 10000 --seeds 0 1 2

A name is a method, or method:preset. Labels are read after training. Each run is added to
benchmarks/results/baselines/<data>.json as it ends; one of the same name, seed and number of images is replaced.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.datasets import read
from dccm.config import parse_assignments, parse_budget
from dccm.data.images import ImageSet
from dccm.evaluation.metrics import scores
from dccm.evaluation.probe import probe_encoder
from dccm.methods.base import encoder_of
from dccm.progress import Display
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.runs.model import Model
from dccm.runs.run import peak_memory

RESULTS = Path(__file__).parent / "results" / "baselines"
SAME = ("system", "seed", "images", "settings", "budget")


def main() -> None:
    """Run each system with each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("systems", nargs="+")
    parser.add_argument("--dataset", default="", help="table of the preset; none: the part for any images")
    parser.add_argument("--budget", help="minutes:M or passes:P; none: the epochs of the preset")
    parser.add_argument("--count", type=int, help="so many images, drawn at random; none: all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--probe", action="store_true", help="probe the encoder, where there is one")
    arguments = parser.parse_args()
    found = some_of(read(arguments.source), arguments.count)
    for system in arguments.systems:
        for seed in arguments.seeds:
            row = measured(found, system, seed, arguments)
            print(json.dumps(row), flush=True)
            keep(RESULTS / f"{Path(arguments.source).stem}.json", row)


def some_of(found: ImageSet, count: int | None) -> ImageSet:
    """Random images of a set, in random order; the same ones every time."""
    if count is None:
        return found
    chosen = np.random.default_rng(0).permutation(len(found.images))[:count]
    assert found.labels is not None
    splits = None if found.splits is None else found.splits[chosen]
    return ImageSet(found.images[chosen], [found.names[i] for i in chosen], found.labels[chosen], splits=splits)


def measured(found: ImageSet, system: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run, its scores and what it cost."""
    assert found.labels is not None
    method, _, preset = system.partition(":")
    settings = {"n_clusters": len(np.unique(found.labels)), "seed": seed} | parse_assignments(arguments.settings)
    settings |= parse_budget(arguments.budget) if arguments.budget else {}
    config = make_config(method, preset or "paper", arguments.dataset, settings)
    with Display() as display:
        fitted = fit(found.images, config, on_progress=display.training)
    predicted = fitted.model.predict_proba(found.images).argmax(axis=1)
    values = {name: value for name, value in scores(found.labels, predicted).items() if name in ("acc", "nmi", "ari")}
    return {
        "system": system,
        "seed": seed,
        "images": len(found.images),
        "settings": arguments.settings,
        "budget": arguments.budget,
        "threads": torch.get_num_threads(),
        **{name: round(value, 4) for name, value in values.items()},
        "clusters": len(np.unique(predicted)),
        "passes": round(fitted.history[-1]["passes"], 1) if fitted.history else None,
        "seconds": round(fitted.seconds, 1),
        "peak_memory_mb": peak_memory(),
        "probe": probed(fitted.model, found) if arguments.probe else None,
    }


def probed(model: Model, found: ImageSet) -> dict[str, float] | None:
    """Accuracy of the probe by layer; none for a method without the package's encoder."""
    encoder = encoder_of(model.method)
    if encoder is None:
        return None
    probed = probe_encoder(encoder, model.loader(found.images), found)
    return {layer: round(value, 4) for layer, value in probed.accuracy.items()}


def keep(path: Path, row: dict[str, Any], same: Sequence[str] = SAME) -> None:
    """Put a run into a file, in place of one in which these keys have the same values."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else []
    rows = [old for old in rows if any(old[name] != row[name] for name in same)]
    path.write_text("[\n" + ",\n".join(json.dumps(one) for one in [*rows, row]) + "\n]\n")


if __name__ == "__main__":
    main()
