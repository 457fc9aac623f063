"""Methods on features of a pretrained encoder: ACC and NMI over seeds, last epoch, beside k-means on the same features.

python -m benchmarks.pretrained ../shared/data --results results-pretrained
python -m benchmarks.pretrained ../shared/data --results results-pretrained --methods kmeans scan dccm --sets caltech20

Every run is an ordinary run directory below the results folder. What is finished there is not run again. The encoder
saw other people's labels; the labels of these sets are looked at for the scores only.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dccm.commands.cluster import cluster
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
TABLE = Path(__file__).parent / "results" / "pretrained.md"


class Scores(NamedTuple):
    """Over the seeds, in their order."""

    images: int
    acc: list[float]
    nmi: list[float]


def main() -> None:
    """Run what is missing, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of parquet files")
    parser.add_argument("--results", type=Path, required=True, help="folder of the run directories")
    parser.add_argument("--encoder", default="efficientnet-lite0")
    parser.add_argument("--methods", nargs="+", default=["kmeans", "dccm"])
    parser.add_argument("--sets", nargs="+", default=list(CLUSTERS), choices=list(CLUSTERS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--keep", action="store_true", help="write the table to benchmarks/results")
    given = parser.parse_args()
    table = {
        (name, method): _scores(given.data / f"{name}.parquet", method, given.encoder, given.seeds, given.results)
        for name in given.sets
        for method in given.methods
    }
    text = markdown(table, given.encoder, given.seeds)
    print(text)
    if given.keep:
        TABLE.write_text(text)


def _scores(path: Path, method: str, encoder: str, seeds: list[int], results: Path) -> Scores:
    found = [_finished(path, method, encoder, seed, results) for seed in seeds]
    return Scores(found[0]["n_images"], *([run["scores"][score] for run in found] for score in ("acc", "nmi")))


def _finished(path: Path, method: str, encoder: str, seed: int, results: Path) -> dict[str, Any]:
    """The result of a run, which is made if it is not there."""
    folder = results / f"{path.stem}-{method}-{seed}"
    if not (folder / "result.json").is_file():
        begun = folder.exists()
        with Display() as display:
            given: dict[str, Any] = {
                "encoder": encoder,
                "seed": seed,
                "output": folder,
                "resume": begun,
                "watcher": display,
            }
            cluster(path, CLUSTERS[path.stem], method, **given)
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    require(result["scores"] is not None, f"{path} has no labels to score against. Give one that has.")
    return result


def markdown(table: dict[tuple[str, str], Scores], encoder: str, seeds: list[int]) -> str:
    """The table: a line per set, ACC (NMI) of each method in the mean, and the seeds behind it."""
    sets, methods = (list(dict.fromkeys(names)) for names in zip(*table))
    lines = [
        f"ACC / NMI on features of {encoder}, which saw other people's labels; mean of the seeds "
        f"{', '.join(map(str, seeds))}, in brackets ACC of each; last epoch.",
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
    return "\n".join(lines) + "\n"


def _cell(scores: Scores) -> str:
    each = ", ".join(f"{value:.3f}" for value in scores.acc)
    return f"{np.mean(scores.acc):.3f} / {np.mean(scores.nmi):.3f} ({each})"


def _gain(table: dict[tuple[str, str], Scores], sets: list[str], method: str) -> str:
    """How far a method is ahead of k-means, in the mean and where it is least."""
    gains = {name: float(np.mean(table[name, method].acc) - np.mean(table[name, REFERENCE].acc)) for name in sets}
    least = min(gains, key=gains.__getitem__)
    mean = float(np.mean(list(gains.values())))
    among = f"in the mean of {len(sets)} sets, least {gains[least]:+.3f} ({least})"
    return f"{method} - {REFERENCE} in ACC: {mean:+.3f} {among}."


if __name__ == "__main__":
    main()
