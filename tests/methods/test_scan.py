import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from dccm.methods.scan import SCANMethod, neighbour_consistency, self_label_loss
from dccm.runs.config import make_config
from dccm.runs.fitting import new_model
from dccm.runs.model import Model
from dccm.training.update import Moment, Update
from tests.methods.vectors import blobs
from tests.support import one_hot, random_prediction

VECTORS = blobs(60)[0]


def begun(**settings: Any) -> tuple[Model, SCANMethod]:
    given = {
        "n_clusters": 3,
        "mini_batch": 20,
        "heads": 4,
        "fewest_steps": 1,
        "encoder": "efficientnet-lite0",
    } | settings
    model = new_model(VECTORS, make_config("scan", overrides=given))
    assert isinstance(model.method, SCANMethod)
    model.method.before_epoch(model.loader(VECTORS), Moment(0, 0.0))
    return model, model.method


def updates_of(model: Model, done: float) -> list[Update]:
    return list(model.learner.updates(replace(next(model.loader(VECTORS).shuffled(0)), done=done)))


def test_consistency_by_hand() -> None:
    prediction = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
    neighbour = torch.tensor([[[0.5, 0.5], [0.2, 0.8]]])
    terms = neighbour_consistency(prediction, neighbour)
    assert float(terms.agreement) == pytest.approx(math.log(2))  # Both products are 0.5.
    assert float(terms.mean_entropy) == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))


def test_sure_heads_that_agree_and_use_all_clusters_have_the_smallest_loss() -> None:
    best = one_hot([0, 1, 2, 0, 1, 2], 3)[None]
    terms = neighbour_consistency(best, best)
    assert float(terms.agreement) == pytest.approx(0)
    assert float(terms.mean_entropy) == pytest.approx(math.log(3))
    apart = neighbour_consistency(best, best.roll(1, dims=1))
    assert math.isfinite(float(apart.agreement))
    assert float(apart.agreement) > 50


def test_only_confident_images_are_learnt_from_and_clusters_weigh_alike() -> None:
    prediction = torch.tensor([[0.995, 0.005], [0.995, 0.005], [0.005, 0.995], [0.6, 0.4]])
    logits = torch.zeros(4, 2, requires_grad=True)
    self_label_loss(logits, prediction, 0.99).backward()
    assert logits.grad is not None
    weights = logits.grad.abs().sum(dim=1)
    torch.testing.assert_close(weights / weights.sum(), torch.tensor([0.25, 0.25, 0.5, 0.0]))


def test_without_a_confident_image_there_is_nothing_to_learn() -> None:
    logits = random_prediction(4, 3).requires_grad_()
    loss = self_label_loss(logits, torch.full((4, 3), 1 / 3), 0.99)
    loss.backward()
    assert float(loss.detach()) == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_neighbours_come_first_and_own_labels_afterwards() -> None:
    model, method = begun()
    neighbours, own = (id(optimizer) for optimizer in method.optimizers.values())
    assert {id(update.optimizer) for update in updates_of(model, 0.4)} == {neighbours}
    assert {id(update.optimizer) for update in updates_of(model, 0.5)} == {own}
    never, method = begun(self_labelling=0.0)
    assert {id(update.optimizer) for update in updates_of(never, 0.99)} == {id(method.optimizers["neighbours"])}


def test_the_head_with_the_smallest_loss_answers_and_alone_learns_its_own_labels() -> None:
    model, method = begun(confidence=0.0)
    method.losses.copy_(torch.tensor([0.0, -1.0, -3.0, -2.0]))
    images = next(iter(model.loader(VECTORS).ordered()))
    torch.testing.assert_close(method.predict(images), method.heads(method.embed(images))[2].softmax(dim=1))
    updates_of(model, 0.9)[0].loss.backward()
    assert method.heads.weight.grad is not None
    assert [bool(grad.any()) for grad in method.heads.weight.grad] == [False, False, True, False]
