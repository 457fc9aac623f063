"""How close is the suggested number of clusters to the number of classes?

python -m benchmarks.choose_k FOLDER -o benchmarks/results/choose_k.json

FOLDER holds the parquet files that docs/choosing_k.md names. Labels are looked at only to count the classes.
Photographs are judged by features of EfficientNet-Lite0, digits and MNIST by their pixels.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dccm.commands.choose_k import choose_k
from dccm.data.datasets import load_digits
from dccm.data.images import ImageSet


class Set(NamedTuple):
    """Images to try."""

    file: str
    """Empty: the digits of scikit-learn."""
    photographs: bool = True
    split: str = ""


SETS = {
    "digits": Set("", photographs=False),
    "mnist, 10,000 test images": Set("mnist", photographs=False, split="test"),
    "fruits10_64": Set("fruits10_64"),
    "tiny_imagenet10": Set("tiny_imagenet10"),
    "caltech20": Set("caltech20"),
    "trashnet6_96": Set("trashnet6_96"),
}


def tried(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """What is suggested for one set and seed, and how many classes it has."""
    chosen, start = SETS[name], time.perf_counter()
    images = str(folder / f"{chosen.file}.parquet") if chosen.file else load_digits()
    encoder = "efficientnet-lite0" if chosen.photographs else None
    found = choose_k(images, encoder=encoder, seed=seed, split=chosen.split)
    choice = found.choice
    return {
        "set": name,
        "seed": seed,
        "classes": classes(found.image_set),
        "suggestion": choice.suggestion,
        "runner_up": choice.runner_up,
        "sureness": choice.sureness,
        "images": choice.images,
        "seconds": round(time.perf_counter() - start, 1),
        "candidates": choice.candidates,
        "score": choice.score,
    }


def classes(image_set: ImageSet) -> int:
    """How many different true labels there are."""
    assert image_set.labels is not None
    return len(np.unique(image_set.labels))


def is_close(row: dict[str, Any]) -> bool:
    """Whether a suggestion is within 20 % of the number of classes."""
    return abs(int(row["suggestion"]) - int(row["classes"])) <= 0.2 * int(row["classes"])


def main() -> None:
    """Try all sets and seeds; print a line and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    for seed in range(arguments.seeds):
        for name in SETS:
            row = tried(arguments.folder, name, seed)
            rows.append(row)
            print(*(row[key] for key in ("set", "seed", "classes", "suggestion", "runner_up", "sureness", "seconds")))
            arguments.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
