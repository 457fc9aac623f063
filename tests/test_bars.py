"""What the README promises, on real images. Minutes long: run by `make slow`."""

import os
from pathlib import Path

import numpy as np
import pytest
from benchmarks.datasets import read

from dccm.data.images import ImageSet
from dccm.evaluation.metrics import accuracy
from dccm.runs.config import make_config
from dccm.runs.fitting import fit

SEEDS = (0, 1, 2)


def scored(found: ImageSet, dataset: str) -> tuple[list[float], list[float]]:
    """Accuracy of the last epoch and seconds of training, for each seed."""
    assert found.labels is not None
    runs = [fit(found.images, make_config("dccm", "fast", dataset, {"seed": seed})) for seed in SEEDS]
    predicted = [run.model.predict_proba(found.images).argmax(axis=1) for run in runs]
    return [accuracy(found.labels, labels) for labels in predicted], [run.seconds for run in runs]


@pytest.mark.slow
def test_digits_are_told_apart_in_two_minutes() -> None:
    accuracies, seconds = scored(read("digits"), "digits")
    assert np.mean(accuracies) >= 0.95, accuracies
    assert max(seconds) < 120, seconds


@pytest.mark.data
def test_mnist_is_told_apart_in_twelve_minutes() -> None:
    path = Path(os.environ.get("DCCM_DATA", "")) / "mnist.parquet"
    if not path.is_file():
        pytest.skip("DCCM_DATA names no folder with mnist.parquet")
    accuracies, seconds = scored(read(str(path), "test"), "mnist")
    assert np.mean(accuracies) >= 0.85, accuracies
    assert max(seconds) < 720, seconds
