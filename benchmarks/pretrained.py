"""Methods on features of a pretrained encoder: scores over seeds, last epoch, beside k-means on the same features.

python -m benchmarks.pretrained FOLDER --results results-pretrained
python -m benchmarks.pretrained FOLDER --results results-pretrained --methods kmeans scan dccm --sets caltech20
python -m benchmarks.pretrained FOLDER --results results-pretrained --tail 10 --sets tiny_imagenet10 fruits10_64

Every run is an ordinary run directory below the results folder. What is finished there is not run again. The encoder
saw other people's labels; the labels of these sets are looked at for the scores only, and for making long tails.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dccm.commands.cluster import cluster
from dccm.data.images import ImageSet
from dccm.data.read import read_images
from dccm.errors import require
from dccm.progress import Display

CLUSTERS = {
    "cifar10": 10,
    "cifar100": 20,
    "tiny_imagenet10": 10,
    "trashnet6_96": 6,
    "fruits10_64": 10,
    "caltech20": 20,
}
"""Parquet files in the data folder, and how many classes they have."""
REFERENCE = "kmeans"
TABLES = Path(__file__).parent / "results"
_SCORES = ("acc", "nmi", "balanced_acc")
_SURETY = ("calibration_error_raw", "calibration_error", "acc_surest_80")


class Scores(NamedTuple):
    """Of the runs of all seeds."""

    images: int
    runs: list[dict[str, Any]]
    """What `result.json` holds of each."""

    def mean(self, name: str) -> float:
        """A score in the mean."""
        return float(np.mean(self.each(name)))

    def each(self, name: str) -> list[float]:
        """A score of each seed."""
        return [(run["scores"] | run["confidence"]["scores"])[name] for run in self.runs]


def main() -> None:
    """Run what is missing, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of parquet files")
    parser.add_argument("--results", type=Path, required=True, help="folder of the run directories")
    parser.add_argument("--encoder", default="efficientnet-lite0")
    parser.add_argument("--methods", nargs="+", default=["kmeans", "dccm"])
    parser.add_argument("--sets", nargs="+", default=list(CLUSTERS), choices=list(CLUSTERS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tail", type=float, default=1.0, help="images of the largest class for one of the smallest")
    parser.add_argument("--keep", action="store_true", help="write the table to benchmarks/results")
    given = parser.parse_args()
    table = {(name, method): _scores(name, method, given) for name in given.sets for method in given.methods}
    text = markdown(table, given.encoder, given.seeds, given.tail)
    print(text)
    if given.keep:
        (TABLES / f"pretrained{'' if given.tail == 1 else '_tail'}.md").write_text(text)


def _scores(name: str, method: str, given: argparse.Namespace) -> Scores:
    found = [_finished(name, method, seed, given) for seed in given.seeds]
    return Scores(found[0]["n_images"], found)


def _finished(name: str, method: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """The result of a run, which is made if it is not there."""
    path = given.data / f"{name}.parquet"
    folder = given.results / f"{name}{'' if given.tail == 1 else f'-tail{given.tail:g}'}-{method}-{seed}"
    if not (folder / "result.json").is_file():
        images = path if given.tail == 1 else long_tailed(read_images(path), given.tail)
        with Display() as display:
            where: dict[str, Any] = {"output": folder, "resume": folder.exists(), "watcher": display}
            cluster(images, CLUSTERS[name], method, encoder=given.encoder, seed=seed, **where)
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    require(result["scores"] is not None, f"{path} has no labels to score against. Give one that has.")
    return result


def long_tailed(image_set: ImageSet, ratio: float) -> ImageSet:
    """Some of the images, the same every time: the largest class stays, each next one is smaller by the same factor."""
    labels, random = np.asarray(image_set.labels), np.random.default_rng(0)
    classes, sizes = np.unique(labels, return_counts=True)
    wanted = [round(sizes.min() * ratio ** (-place / (len(classes) - 1))) for place in range(len(classes))]
    drawn = [
        random.permutation(np.flatnonzero(labels == one))[:count]
        for one, count in zip(random.permutation(classes), wanted, strict=True)
    ]
    rows = np.sort(np.concatenate(drawn))
    return ImageSet(image_set.images[rows], [image_set.names[row] for row in rows], labels[rows])


def markdown(table: dict[tuple[str, str], Scores], encoder: str, seeds: list[int], tail: float) -> str:
    """The tables: a line per set, scores of each method in the mean and ACC of each seed; then how sure they are."""
    sets, methods = (list(dict.fromkeys(names)) for names in zip(*table))
    uneven = "" if tail == 1 else f" Classes fall in size from {tail:g} to 1."
    lines = [
        f"ACC / NMI / balanced ACC on features of {encoder}, which saw other people's labels; mean of the seeds "
        f"{', '.join(map(str, seeds))}, in brackets ACC of each; last epoch.{uneven}",
        "",
        "| images | " + " | ".join(methods) + " |",
        "|---" * (len(methods) + 1) + "|",
    ]
    for name in sets:
        cells = [_cell(table[name, method]) for method in methods]
        lines.append(f"| {name}, {table[name, methods[0]].images:,} | " + " | ".join(cells) + " |")
    for method in methods:
        if method != REFERENCE and REFERENCE in methods:
            lines += ["", _gain(table, sets, method)]
    lines += ["", "Calibration error raw, calibrated without labels; ACC of the surest 80 % of the images.", ""]
    lines += ["| images | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for name in sets:
        lines.append(f"| {name} | " + " | ".join(_sureness(table[name, method]) for method in methods) + " |")
    return "\n".join(lines) + "\n"


def _cell(scores: Scores) -> str:
    each = ", ".join(f"{value:.3f}" for value in scores.each("acc"))
    return " / ".join(f"{scores.mean(name):.3f}" for name in _SCORES) + f" ({each})"


def _sureness(scores: Scores) -> str:
    raw, calibrated, surest = (f"{scores.mean(name):.3f}" for name in _SURETY)
    return f"{raw}, {calibrated}; {surest}"


def _gain(table: dict[tuple[str, str], Scores], sets: list[str], method: str) -> str:
    """How far a method is ahead of k-means, in the mean and where it is least."""
    gains = {name: table[name, method].mean("acc") - table[name, REFERENCE].mean("acc") for name in sets}
    least = min(gains, key=gains.__getitem__)
    mean = float(np.mean(list(gains.values())))
    among = f"in the mean of {len(sets)} sets, least {gains[least]:+.3f} ({least})"
    return f"{method} - {REFERENCE} in ACC: {mean:+.3f} {among}."


if __name__ == "__main__":
    main()
