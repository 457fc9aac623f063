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


def scored(image_set: ImageSet, dataset: str, seeds: int) -> tuple[list[float], list[float]]:
    """Accuracy of the last epoch and seconds of training, for each seed."""
    assert image_set.labels is not None
    runs = [fit(image_set.images, make_config("dccm", "fast", dataset, {"seed": seed})) for seed in range(seeds)]
    clusters = [run.model.predict_proba(image_set.images).argmax(axis=1) for run in runs]
    return [accuracy(image_set.labels, assigned) for assigned in clusters], [run.seconds for run in runs]


@pytest.mark.slow
def test_digits_are_told_apart_in_a_minute() -> None:
    accuracies, seconds = scored(read("digits"), "digits", seeds=5)
    assert np.mean(accuracies) >= 0.95, accuracies
    assert max(seconds) < 60, seconds


@pytest.mark.data
def test_mnist_is_told_apart_in_twelve_minutes() -> None:
    path = Path(os.environ.get("DCCM_DATA", "")) / "mnist.parquet"
    if not path.is_file():
        pytest.skip("DCCM_DATA names no folder with mnist.parquet")
    accuracies, seconds = scored(read(str(path), "test"), "mnist", seeds=3)
    assert np.mean(accuracies) >= 0.85, accuracies
    assert max(seconds) < 720, seconds
