"""What corrections are worth: a user who knows the true classes corrects a few images, and the run learns on.

    python -m benchmarks.simulated_user cifar10.parquet -k 10 --split test --encoder efficientnet-lite0 --results RUNS
    python -m benchmarks.simulated_user digits -k 10 --preset fast --dataset digits --results RUNS

For each seed: cluster; the user names each cluster by the class that fits it best, and puts the least sure images where
they belong; then `--improve`. Beside it the same further training without corrections. True labels reach the user's
corrections and the scores, nothing else.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from dccm.commands.cluster import cluster
from dccm.commands.corrections import import_corrections
from dccm.corrections.going_on import GoingOn, going_on
from dccm.data.images import ImageSet
from dccm.evaluation.metrics import accuracy
from dccm.runs.directory import RunDirectory
from dccm.runs.features import encoder_for, inputs_of
from dccm.runs.fitting import fit, new_model

Numbers = npt.NDArray[np.int64]


def main() -> None:
    """Make all runs, and print a line for each seed and one for the means."""
    asked = _asked()
    rows = [_one_seed(asked, seed) for seed in asked.seeds]
    rows.append({name: float(np.mean([row[name] for row in rows])) for name in rows[0]})
    for row in rows:
        print("  ".join(f"{name} {value:.4f}" for name, value in row.items()))
    if asked.output:
        asked.output.write_text(json.dumps({"source": Path(asked.source).name, "rows": rows}, indent=1) + "\n")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("-k", type=int, required=True, help="number of clusters")
    parser.add_argument("--results", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--corrected", type=int, default=50, help="images that the user corrects")
    parser.add_argument("--which", choices=("least-sure", "random"), default="least-sure")
    parser.add_argument("--output", type=Path, help="file for the figures, as JSON")
    for name in ("split", "encoder", "preset", "dataset"):
        parser.add_argument(f"--{name}", default=None)
    return parser.parse_args()


def _one_seed(asked: argparse.Namespace, seed: int) -> dict[str, float]:
    name = f"{Path(asked.source).stem}-{asked.corrected}-{asked.which}-{seed}"
    run, better = asked.results / name, asked.results / f"{name}-improved"
    given: dict[str, Any] = {"encoder": asked.encoder, "preset": asked.preset, "dataset": asked.dataset or ""}
    made = cluster(asked.source, asked.k, output=run, seed=seed, split=asked.split or "", **given)
    image_set = made.image_set
    true = np.unique(np.asarray(image_set.labels), return_inverse=True)[1]
    before = made.directory.read_assignments()
    rows = _chosen(before.confidences, asked, seed)
    corrections = _corrections(true, before.clusters, rows, before.paths)
    import_corrections(run, corrections)
    cluster(image_set, improve=run, output=better)
    after = RunDirectory(better).read_assignments().clusters
    control = _without_corrections(going_on(RunDirectory(run), {}), image_set)
    others = np.setdiff1d(np.arange(len(true)), rows)
    return {
        f"{when} {of}": accuracy(true[which], found[which])
        for when, found in (("before", before.clusters), ("control", control), ("after", after))
        for of, which in (("all", slice(None)), ("others", others))
    }


def _chosen(confidences: npt.NDArray[Any], asked: argparse.Namespace, seed: int) -> Numbers:
    """The images that the user looks at."""
    if asked.which == "random":
        return np.random.default_rng(seed).permutation(len(confidences))[: asked.corrected]
    return np.argsort(confidences, kind="stable")[: asked.corrected]


def _corrections(true: Numbers, clusters: Numbers, rows: Numbers, paths: Sequence[str]) -> list[str]:
    """What the user does, as lines for `dccm corrections --import`."""
    named = dict(zip(*linear_sum_assignment(contingency_matrix(true, clusters), maximize=True)))
    return [
        json.dumps(
            {"kind": "move", "images": [[int(row), paths[row]]], "cluster": int(named[true[row]]), "who": "user"}
        )
        for row in rows
    ]


def _without_corrections(going: GoingOn, image_set: ImageSet) -> Numbers:
    """The same run, trained further by itself."""
    nothing = np.zeros(len(going.lesson.labels), bool)
    lesson = replace(going.lesson, labels=np.full_like(going.lesson.labels, -1), by_hand=nothing)
    encoder = encoder_for(going.config)
    inputs, _ = inputs_of(image_set, encoder)
    model = new_model(inputs, going.config, encoder, lesson)
    return fit(inputs, going.config, model=model, lesson=lesson).model.assign(inputs).clusters


if __name__ == "__main__":
    main()
