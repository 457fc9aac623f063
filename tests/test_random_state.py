"""The random state of the process is the caller's: nothing here reads it or writes to it."""

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods import METHODS
from dccm.networks.seeds import drawn_from
from dccm.runs.config import make_config
from dccm.runs.model import Model
from tests.clusterers import estimator, quick

IMAGES = bars(40, side=8).images
ON_PICTURES = [name for name, kind in METHODS.items() if not kind.needs_vectors]


def states() -> list[Any]:
    """Of torch, NumPy and Python."""
    _, keys, place, *_ = np.random.get_state()  # noqa: NPY002 - the one that others may use
    return [torch.get_rng_state().tolist(), np.asarray(keys).tolist(), place, random.getstate()]


@pytest.fixture
def quick_turns() -> Iterator[None]:
    """Threads that give way to each other a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("method", ON_PICTURES)
def test_a_fit_leaves_the_random_state_of_the_process_as_it_is(method: str) -> None:
    before = states()
    quick(method).fit(IMAGES)
    assert states() == before


def first_weights(seed: int) -> list[float]:
    method = Model.untrained(ImageShape(3, 32, 32), make_config("dccm", overrides={"seed": seed})).method
    return [float(value.double().sum()) for value in method.state_dict().values()]


def test_models_made_in_threads_are_those_made_one_after_the_other(quick_turns: None) -> None:
    seeds = [1, 2] * 6
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(first_weights, seeds)) == [first_weights(1), first_weights(2)] * 6


def test_fits_in_threads_are_those_made_one_after_the_other(quick_turns: None) -> None:
    def fitted(seed: int) -> list[float]:
        return estimator(random_state=seed).fit(IMAGES).predict_proba(IMAGES).ravel().tolist()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(fitted, (1, 2))) == [fitted(1), fitted(2)]


def test_what_is_drawn_is_what_the_same_seed_gives_a_whole_process() -> None:
    def network() -> list[float]:
        layers = [torch.nn.Conv2d(2, 3, 3), torch.nn.Linear(4, 2), torch.nn.Embedding(3, 2)]
        torch.nn.init.orthogonal_(layers[1].weight)  # type: ignore[arg-type]
        return [float(value) for layer in layers for value in layer.parameters().__next__().detach().ravel()]

    with torch.random.fork_rng():
        torch.manual_seed(3)
        expected = network()
    with drawn_from(3):
        assert network() == expected
