"""Do measures without labels put runs in the order of their accuracy? Runs of many methods, and rank correlations.

    python -m benchmarks.judgement FOLDER [--sets digits mnist fruits] [--seconds 500]

Runs that FOLDER has already are not made again, so that it can be made in pieces. MNIST and the fruits are parquet
files in the folder that DCCM_DATA names. True labels are looked at here alone.
"""

import argparse
import json
import os
import time
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau, spearmanr

from benchmarks.datasets import read, some_of
from dccm.commands.cluster import cluster
from dccm.commands.compare import compare
from dccm.data.images import ImageSet
from dccm.errors import UserError
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import read_judgement

SEEDS = 3
RESULTS = Path(__file__).parent / "results"
SETS: dict[str, tuple[str, str | None, int | None]] = {
    "digits": ("digits", None, None),
    "mnist": ("mnist.parquet", "test", 2000),
    "fruits": ("fruits10_64.parquet", "test", 600),
}
"""Source, split and number of images."""


TUNED = "dccm tuned"
"""With the settings of the data set, for the digits alone: elsewhere it takes long."""


class Kind(NamedTuple):
    """Runs that differ by their seed alone."""

    name: str
    method: str
    epochs: int | None = None
    """On the digits; None: as the preset says, or the method has none."""
    epochs_elsewhere: int | None = None

    def settings(self, name: str, seed: int) -> dict[str, Any]:
        """For a set and a seed: short runs, of several qualities."""
        epochs = self.epochs if name == "digits" else self.epochs_elsewhere
        found: dict[str, Any] = {"encoder": "scratch", "seed": seed}
        found |= {"epochs": epochs} if epochs else {}
        return found | ({"starts": 1} if self.method == "dccm" and epochs else {})


KINDS = [
    Kind("kmeans", "kmeans"),
    Kind("nmf", "nmf"),
    Kind("agglomerative", "agglomerative"),
    Kind("spectral", "spectral"),
    Kind("ae short", "ae", 3, 1),
    Kind("ae", "ae", 20, 3),
    Kind("vae", "vae", 10, 2),
    Kind("dec", "dec", 10, 2),
    Kind("rotnet", "rotnet", 5, 1),
    Kind("dac", "dac", 5, 1),
    Kind("dccm short", "dccm", 1, 1),
    Kind("dccm", "dccm", 5, 2),
    Kind(TUNED, "dccm"),
]
MEASURES = ("perturbation", "seeds", "information", "silhouette", "others", "confidence")


def images_of(name: str) -> ImageSet:
    """The images of a set, with labels."""
    source, split, count = SETS[name]
    place = source if source == "digits" else str(Path(os.environ.get("DCCM_DATA", "")) / source)
    return some_of(read(place, split), count)


def make(folder: Path, name: str, until: float) -> bool:
    """The runs of a set that are not there yet; whether all are."""
    images = None
    for kind in KINDS:
        if kind.name == TUNED and name != "digits":
            continue
        for seed in range(SEEDS):
            place = folder / name / f"{kind.name} {seed}"
            if (place / "judgement.json").is_file():
                continue
            if time.monotonic() > until:
                return False
            images = images or images_of(name)
            started = time.process_time()
            settings = kind.settings(name, seed)
            try:
                dataset = name if kind.name == TUNED else ""
                cluster(images, 10, kind.method, output=place, settings=settings, dataset=dataset)
                scores, seconds = RunDirectory(place).read_result().scores or {}, time.process_time() - started
                print(f"{name}  {place.name:18s}  ACC {scores['acc']:.3f}  {seconds:.1f} s", flush=True)
            except UserError as error:
                print(f"{name}  {place.name:18s}  {error}")
    return True


def row_of(place: Path, others: list[Path]) -> dict[str, float]:
    """Accuracy of a run, and what each measure says of it."""
    directory = RunDirectory(place)
    result, judged = directory.read_result(), read_judgement(directory.judgement)
    assert result.scores is not None
    assert result.confidence is not None
    assert judged is not None
    agreement = [compare(place, other).ari for other in others]
    found = {
        "acc": result.scores["acc"],
        "nmi": result.scores["nmi"],
        "perturbation": judged.beyond_chance,
        "seeds": float(np.mean(agreement)) if agreement else None,
        "information": judged.information,
        "silhouette": judged.silhouette,
        "others": result.confidence.agreement,
        "confidence": result.confidence.mean,
    }
    return {key: float("nan") if value is None else float(value) for key, value in found.items()}


def rows_of(folder: Path, name: str) -> dict[str, dict[str, float]]:
    """The rows of all finished runs of a set; a run is compared with the next seed of its kind."""
    rows = {}
    for kind in KINDS:
        runs = [folder / name / f"{kind.name} {seed}" for seed in range(SEEDS)]
        runs = [run for run in runs if (run / "judgement.json").is_file()]
        for place, run in enumerate(runs):
            rows[run.name] = row_of(run, [runs[(place + 1) % len(runs)]] if len(runs) > 1 else [])
    return rows


def orders(rows: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Of each measure: rank correlations with ACC, and how often the better of two runs is named, ties left out."""
    found = {}
    for measure in MEASURES:
        pairs = [(row[measure], row["acc"]) for row in rows.values() if np.isfinite(row[measure])]
        values, accuracies = np.array(pairs).T
        told = [
            (one[0] - other[0]) * (one[1] - other[1]) > 0
            for one, other in combinations(pairs, 2)
            if abs(one[1] - other[1]) > 0.05
        ]
        found[measure] = {
            "spearman": float(spearmanr(values, accuracies).statistic),
            "kendall": float(kendalltau(values, accuracies).statistic),
            "better named": float(np.mean(told)),
            "runs": len(pairs),
        }
    return found


def within(rows: dict[str, dict[str, float]]) -> dict[str, float]:
    """The same Spearman correlation among runs of one family of methods: dccm alone, where one would choose by it."""
    own = {name: row for name, row in rows.items() if name.startswith("dccm")}
    return {measure: values["spearman"] for measure, values in orders(own).items()}


def main() -> None:
    """Make the runs, and print what they say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--seconds", type=float, default=1e9, help="No run is begun after so many.")
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    table: dict[str, dict[str, Any]] = {}
    for name in given.sets:
        make(given.folder, name, until)
        rows = rows_of(given.folder, name)
        if len(rows) > 2:
            table[name] = {"orders": orders(rows), "dccm alone": within(rows), "runs": rows}
            print(f"\n{name}: {len(rows)} runs\nmeasure        Spearman  Kendall  better named  dccm alone")
            for measure, values in table[name]["orders"].items():
                print(
                    f"{measure:13s}  {values['spearman']:8.2f}  {values['kendall']:7.2f}  "
                    f"{values['better named']:12.2f}  {table[name]['dccm alone'][measure]:10.2f}"
                )
    (given.folder / "judgement.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
