import math
from typing import Any

import pytest
import torch

from dccm.arrays import ImageShape
from dccm.correlations.triplets import PairStrategy
from dccm.data.synthetic import bars
from dccm.methods.base import calibrate
from dccm.methods.dccm import DCCMMethod
from dccm.networks.critic import Critic
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from dccm.training.update import Update

SMALL = {"batch_size": 30, "mini_batch": 10, "epochs": 1, "learning_rate": 1e-3, "critic_positions": 4}


def model(side: int = 8, **settings: Any) -> Model:
    overrides = SMALL | {"n_clusters": 4} | settings
    return Model.untrained(ImageShape(1, side, side), make_config("dccm", "paper", overrides=overrides))


def updates_of(model: Model, count: int = 30) -> list[Update]:
    batch = next(model.loader(bars(count, side=model.shape.height).images).shuffled(0))
    model.method.train()
    return list(model.learner.updates(batch))


def test_a_large_batch_gives_an_update_for_each_mini_batch_and_use() -> None:
    updates = updates_of(model(uses=3))
    assert [update.images for update in updates] == [10] * 9


def test_targets_of_few_images_are_learnt_from_more_often() -> None:
    assert len(updates_of(model(fewest_steps=8))) == 9  # Whole rounds, of three mini-batches each.
    assert len(updates_of(model(fewest_steps=3, uses=2))) == 6
    assert len(updates_of(model(fewest_steps=2))) == 3


def test_terms_add_up_to_the_objective() -> None:
    for update in updates_of(model(label_threshold=0.2)):
        terms = update.terms
        assert float(terms["label"].detach()) > 0
        expected = terms["graph"] + 5 * terms["label"] + 0.1 * terms["information"]
        torch.testing.assert_close(update.loss, expected)


@pytest.mark.parametrize(
    ("settings", "active"),
    [
        ({"perturbed_weight": 0, "label_weight": 0, "information_weight": 0}, {"graph"}),  # M1
        ({"label_weight": 0, "information_weight": 0}, {"graph"}),  # M2
        ({"information_weight": 0}, {"graph", "label"}),  # M3
        ({}, {"graph", "label", "information"}),  # M4
    ],
)
def test_ablations_leave_out_their_terms(settings: dict[str, Any], active: set[str]) -> None:
    learner = model(label_threshold=0.0, **settings).method
    assert isinstance(learner, DCCMMethod)
    update = updates_of(Model(learner, ImageShape(1, 8, 8), make_config("dccm", "paper", overrides=SMALL)))[0]
    weights = {"graph": 1.0, "label": learner.config.label_weight, "information": learner.config.information_weight}
    assert {name for name, value in update.terms.items() if weights[name] and float(value.detach())} == active
    update.loss.backward()
    critic = learner.critic
    assert isinstance(critic, Critic)
    critic_learns = any(p.grad is not None and bool(p.grad.any()) for p in critic.parameters())
    assert critic_learns == ("information" in active)


def test_without_perturbed_weight_no_image_is_perturbed_in_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = []
    for factor in (0.0, 1.0):
        monkeypatch.setattr("dccm.data.perturb.apply", lambda images, _, factor=factor: images * factor)
        losses.append([float(update.loss.detach()) for update in updates_of(model(perturbed_weight=0.0))])
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"graph_loss": "contrastive"},
        {"robustness": "invariance"},
        {"robustness": "invariance", "clean_weight": 0},
        {"label_loss": "binary_cross_entropy"},
        {"deep_feature": "logits"},
        {"shallow_map": "unpooled"},
        {"initialisation": "identity"},
        {"logit_norm": "none"},
        {"logit_norm": "balanced"},
        {"negatives": 2},
        {"own_pairs": False},
        {"saturated_pairs": "learn"},
        {"zoom_axes": "apart"},
        {"joint_views": False},
        {"label_reduction": "sum"},
        {"width": 0.25},
        {"optimizer": "adam"},
        {"clean_weight": 0},
        *({"pairs": pairs} for pairs in PairStrategy.__args__),  # type: ignore[attr-defined]
    ],
)
def test_every_choice_trains_with_finite_gradients(settings: dict[str, Any]) -> None:
    trained = model(label_threshold=0.3, **settings)
    history = train(trained.learner, trained.loader(bars(40, side=8).images), trained.config.training)
    assert math.isfinite(history[-1]["loss"])
    assert all(bool(parameter.isfinite().all()) for parameter in trained.method.parameters())


def test_targets_come_from_clean_images_only(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for factor in (0.0, 1.0):
        monkeypatch.setattr("dccm.data.perturb.apply", lambda images, _, factor=factor: images * factor)
        watched = updates_of(model())[0].watched
        assert watched is not None
        counts.append(watched.cluster_sizes.tolist())
    assert counts[0] == counts[1]


def test_calibration_gives_the_statistics_of_all_images_and_keeps_the_momentum() -> None:
    trained = model()
    found = bars(50, side=8).images
    norm = next(m for m in trained.method.modules() if isinstance(m, torch.nn.BatchNorm2d))
    calibrate(trained.learner, trained.loader(found))
    images = torch.from_numpy(found).permute(0, 3, 1, 2).float() / 255
    first = next(m for m in trained.method.modules() if isinstance(m, torch.nn.Conv2d))
    outputs = first(images)
    assert norm.running_mean is not None
    torch.testing.assert_close(norm.running_mean, outputs.mean(dim=(0, 2, 3)).detach(), rtol=1e-4, atol=1e-5)
    assert norm.momentum == 0.1
    assert not trained.method.training


def test_bars_of_four_directions_are_told_apart() -> None:
    from dccm.evaluation.metrics import accuracy

    found = bars(200, side=12)
    trained = model(12, batch_size=100, mini_batch=20, epochs=15, flip=False, width=0.25)
    assert found.labels is not None
    train(trained.learner, trained.loader(found.images), trained.config.training)
    calibrate(trained.learner, trained.loader(found.images))
    assert accuracy(found.labels, trained.predict_proba(found.images).argmax(axis=1)) > 0.9


def test_the_sum_reading_weighs_labels_by_one_over_the_mini_batch() -> None:
    for update in updates_of(model(label_threshold=0.2, label_reduction="sum")):
        terms = update.terms
        expected = terms["graph"] + 5 / update.images * terms["label"] + 0.1 * terms["information"]
        torch.testing.assert_close(update.loss, expected)


def test_views_apart_have_statistics_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then whatever happens to the perturbed images changes nothing about the clean ones."""
    monkeypatch.setattr("dccm.data.perturb.apply", lambda images, _: images * 0)
    found = {}
    for joint in (True, False):
        weights: dict[str, Any] = {"perturbed_weight": 1e-30, "information_weight": 0, "label_weight": 0}
        found[joint] = float(updates_of(model(joint_views=joint, **weights))[0].loss.detach())
    alone = float(updates_of(model(perturbed_weight=0, information_weight=0, label_weight=0))[0].loss.detach())
    assert found[False] == pytest.approx(alone, rel=1e-5)
    assert found[True] != pytest.approx(alone, rel=1e-3)


def test_rmsprop_takes_its_alpha() -> None:
    assert model(rmsprop_alpha=0.9).learner.optimizers["all"].param_groups[0]["alpha"] == 0.9
