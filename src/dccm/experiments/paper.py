"""What the paper printed, to be set beside what was measured here."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

SCORES = ("nmi", "acc", "ari")
"""In the order of the paper's tables."""
NAMES = {
    "kmeans": "K-means", "spectral": "SC", "agglomerative": "AC", "nmf": "NMF", "ae": "AE", "dae": "DAE", "gan": "GAN",
    "decnn": "DeCNN", "vae": "VAE", "jule": "JULE", "dec": "DEC", "dac": "DAC", "dccm": "DCCM", "rotnet": "RotNet",
    "deepcluster": "DeepCluster", "aae": "AAE", "bigan": "BiGAN", "nat": "NAT", "dim": "DIM",
}  # fmt: skip
"""Systems as the paper writes them."""


@cache
def numbers() -> dict[str, Any]:
    """All of them: table, then data set, then row."""
    return tomllib.loads(resources.files("dccm.experiments").joinpath("paper.toml").read_text(encoding="utf-8"))


def printed(table: str, dataset: str, row: str) -> list[str]:
    """What the paper prints in a row, as it prints it; empty where it prints nothing."""
    values = numbers().get(table, {}).get(dataset, {}).get(row, [])
    return [value if isinstance(value, str) else f"{value:.3f}" for value in values]
