"""Blocks of a pretrained encoder that learn with the head: steps, files and going on, without the slow front."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from dccm.arrays import Halves
from dccm.errors import UserError
from dccm.methods.dccm import DCCMMethod
from dccm.networks.map_encoder import MapEncoder
from dccm.networks.tail import TailHead
from dccm.runs.config import RunConfig, make_config
from dccm.runs.fitting import fit, new_model
from dccm.runs.model import Model
from dccm.training.checkpoint import CheckpointFolder
from dccm.training.loop import InterruptedRunError
from tests.networks.weights import random_network

ENCODER = MapEncoder("efficientnet-lite0", random_network().folded(), 1, torch.device("cpu"))


def config(**settings: Any) -> RunConfig:
    given = {"n_clusters": 3, "mini_batch": 6, "batch_size": 12, "epochs": 2, "device": "cpu", "threads": 1}
    return make_config("dccm", None, "", {"encoder": ENCODER.name, "finetune": 1} | given | settings)


def three_kinds(count: int = 24) -> Halves:
    """Maps around three random ones."""
    random = np.random.default_rng(0)
    kinds = random.normal(size=(3, 7, 7, 192))[np.arange(count) % 3]
    return (kinds + 0.3 * random.normal(size=kinds.shape)).astype(np.float16)


def tail_of(model: Model) -> dict[str, Tensor]:
    assert isinstance(model.learner.encoder, TailHead)
    return {name: value.clone() for name, value in model.learner.encoder.tail.state_dict().items()}


def started(maps: Halves, settings: RunConfig) -> Model:
    return new_model(maps, settings, ENCODER)


class Finished(NamedTuple):
    begun: dict[str, Tensor]
    model: Model


@pytest.fixture(scope="module")
def finished() -> Finished:
    model = started(three_kinds(), config())
    begun = tail_of(model)
    return Finished(begun, fit(three_kinds(), config(), model=model).model)


def test_blocks_begin_as_they_were_pretrained_and_learn_far_slower_than_the_head(finished: Finished) -> None:
    begun, model = finished
    assert all(torch.equal(value, begun[name]) for name, value in ENCODER.tail.state_dict().items())
    assert isinstance(model.method, DCCMMethod)
    rates = [group["lr"] for group in model.method.optimizers["all"].param_groups]
    assert rates == pytest.approx([3e-3, 3e-5])
    moved = [(value - begun[name]).abs().max().item() for name, value in tail_of(model).items()]
    # A step of Adam moves a weight by about the rate; these are two epochs of two large batches, eight steps each.
    assert min(moved) > 0
    assert max(moved) < 2 * 2 * 8 * 2 * 3e-5


def test_kinds_are_told_apart(finished: Finished) -> None:
    clusters = finished.model.assign(three_kinds()).clusters.reshape(8, 3)
    assert (clusters == clusters[0]).all()
    assert len(set(clusters[0].tolist())) == 3


def test_the_map_at_the_cut_is_what_the_mutual_information_is_about() -> None:
    settings = config(information_weight=0.1, critic_positions=4, epochs=1)
    fitted = fit(three_kinds(), settings, model=started(three_kinds(), settings))
    assert fitted.history[0]["information"] != 0
    assert isinstance(fitted.model.method, DCCMMethod)
    assert fitted.model.method.critic.of_map.in_features == 192


def test_a_saved_model_has_the_trained_blocks_and_says_the_same(finished: Finished, tmp_path: Path) -> None:
    model = finished.model
    model.save(tmp_path)
    loaded = Model.load(tmp_path, "cpu")
    assert all(torch.equal(value, tail_of(model)[name]) for name, value in tail_of(loaded).items())
    assert np.array_equal(loaded.predict_proba(three_kinds()), model.predict_proba(three_kinds()))
    assert np.array_equal(loaded.transform(three_kinds()), model.transform(three_kinds()))
    assert json.loads((tmp_path / "model.json").read_text())["settings"]["finetune"] == 1


def test_a_stopped_run_goes_on_to_the_same_weights(finished: Finished, tmp_path: Path) -> None:
    settings, seen = config(), list[Any]()

    def stop_in_the_second_epoch(progress: Any) -> None:
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    checkpoints, model = CheckpointFolder(tmp_path), started(three_kinds(), settings)
    with pytest.raises(InterruptedRunError):
        fit(three_kinds(), settings, model=model, checkpoints=checkpoints, on_progress=stop_in_the_second_epoch)
    checkpoint, _ = checkpoints.newest()
    assert checkpoint is not None
    again = fit(three_kinds(), settings, model=started(three_kinds(), settings), resume=checkpoint).model
    ours, theirs = again.method.state_dict(), finished.model.method.state_dict()
    assert all(torch.equal(ours[name], value) for name, value in theirs.items())


def test_without_finetune_all_weights_take_the_same_steps_and_none_is_pretrained() -> None:
    vectors = three_kinds()[:, :1, :1]
    model = new_model(vectors, config(finetune=0))
    assert isinstance(model.method, DCCMMethod)
    assert len(model.method.optimizers["all"].param_groups) == 1
    assert not isinstance(model.method.encoder, TailHead)


@pytest.mark.parametrize("method", ["kmeans", "dec", "dac", "spectral"])
def test_methods_without_a_head_on_vectors_refuse(method: str) -> None:
    with pytest.raises(UserError, match=f"finetune must be left out for the method '{method}', .* Methods that do: "):
        make_config(method, None, "", {"encoder": "efficientnet-lite0", "finetune": 1})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"perturbed_weight": 1.0}, "perturbed_weight must be 0 with finetune, .* got 1. Take the preset 'features'"),
        ({"finetune": 17}, "efficientnet-lite0 has 16 blocks, got 17"),
        ({"finetune": -1}, "finetune must be at least 0, got -1"),
        ({"encoder": "onnx:a.onnx"}, "an ONNX file can be run and not trained"),
        ({"encoder": "scratch"}, "'scratch' learns all of its network anyway"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        started(three_kinds(), config(**settings))
