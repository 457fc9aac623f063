from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.starts import SeveralStarts, still_running
from dccm.networks.paper import PaperEncoder
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.update import Update

both = pytest.mark.parametrize("name", ["dccm", "dac"])
"""The methods that may have several starts."""


def model(name: str, **settings: Any) -> Model:
    overrides = {"batch_size": 30, "mini_batch": 10, "epochs": 1, "n_clusters": 4} | settings
    return Model.untrained(ImageShape(1, 8, 8), make_config(name, "paper", overrides=overrides))


def method_of(model: Model) -> SeveralStarts:
    assert isinstance(model.method, SeveralStarts)
    return model.method


def encoder(method: SeveralStarts, number: int) -> PaperEncoder:
    found = method.starts[number].encoder
    assert isinstance(found, PaperEncoder)
    return found


def updates_of(model: Model, done: float = 0.0) -> list[Update]:
    batch = replace(next(model.loader(bars(30, side=8).images).shuffled(0)), done=done)
    model.method.train()
    return list(model.learner.updates(batch))


@both
def test_large_images_are_looked_at_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.data.loader._PIXELS", 8 * 8 * 2)
    monkeypatch.setattr("dccm.data.loader._FEWEST_FOR_STATISTICS", 6)
    trained = model(name)
    sizes: list[int] = []

    def count(_: torch.nn.Module, inputs: tuple[torch.Tensor]) -> None:
        if not torch.is_grad_enabled():
            sizes.append(len(inputs[0]))

    trained.learner.get_submodule("encoder").register_forward_pre_hook(count)
    updates_of(trained)
    assert sizes == [6] * 5


def test_starts_are_dropped_one_after_the_other_until_one_is_left() -> None:
    assert [still_running(3, done) for done in (0.0, 0.59, 0.6, 0.69, 0.71, 0.81, 1.0)] == [3, 3, 2, 2, 1, 1, 1]
    assert [still_running(2, done) for done in (0.5, 0.6, 1.0)] == [2, 1, 1]
    assert [still_running(1, done) for done in (0.0, 0.6, 1.0)] == [1, 1, 1]


@both
def test_start_that_tells_most_stays_and_answers(name: str) -> None:
    trained = model(name, starts=3)
    method = method_of(trained)
    with torch.no_grad():
        encoder(method, 1).output_norm.weight *= 30  # type: ignore[assignment, operator]  # Sure of everything.
    updates = updates_of(trained)
    assert [update.images for update in updates] == [10] * 9  # All of them learn.
    assert [update.watched is not None for update in updates] == [True] * 3 + [False] * 6  # One is watched.
    assert method.answering.item() == 1
    assert method.best is method.starts[1]
    others = [{name: value.clone() for name, value in method.starts[n].state_dict().items()} for n in (0, 2)]
    updates = updates_of(trained, done=0.9)
    assert len(updates) == 3
    assert updates[0].optimizer is method.optimizers["start1.all"]
    # Those that were dropped neither learn nor come back.
    for number, before in zip((0, 2), others, strict=True):
        assert all(torch.equal(value, before[name]) for name, value in method.starts[number].state_dict().items())
    assert method.told[[0, 2]].tolist() == [-1, -1]
    with torch.no_grad():
        method.told[1] = 0
    updates_of(trained, done=0.9)
    assert method.answering.item() == 1


@both
def test_a_finished_model_holds_the_start_that_answers_and_no_other(name: str, tmp_path: Path) -> None:
    trained, images = model(name, starts=3), bars(30, side=8).images
    method = method_of(trained)
    method.answering.fill_(2)
    kept = method.starts[2]
    trained.method = method.finish(trained.loader(images))
    assert trained.method is kept
    trained.save(tmp_path)
    loaded = Model.load(tmp_path, "cpu")
    assert not isinstance(loaded.method, SeveralStarts)
    assert np.array_equal(loaded.predict_proba(images), trained.predict_proba(images))


@both
def test_starts_begin_with_different_weights(name: str) -> None:
    method = method_of(model(name, starts=2))
    first, second = (next(encoder(method, number).parameters()) for number in range(2))
    assert not torch.equal(first, second)
