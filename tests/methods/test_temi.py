import math
from typing import Any

import pytest
import torch

from dccm.methods.temi import TEMIMethod, pair_weight, pointwise_information
from dccm.runs.config import make_config
from dccm.runs.fitting import new_model
from dccm.runs.model import Model
from dccm.training.update import Moment
from dccm.training.workers import ALONE
from tests.methods.vectors import blobs
from tests.support import one_hot, random_prediction

VECTORS = blobs(60)[0]


def begun(**settings: Any) -> tuple[Model, TEMIMethod]:
    given = {
        "n_clusters": 3,
        "mini_batch": 20,
        "heads": 4,
        "fewest_steps": 1,
        "encoder": "efficientnet-lite0",
    } | settings
    model = new_model(VECTORS, make_config("temi", overrides=given))
    assert isinstance(model.method, TEMIMethod)
    model.method.before_epoch(model.loader(VECTORS), Moment(0, 0.0))
    return model, model.method


def test_information_by_hand() -> None:
    student, teacher = torch.tensor([[[0.8, 0.2]]]), torch.tensor([[[0.5, 0.5]]])
    found = pointwise_information(student, teacher, torch.tensor([[0.25, 0.75]]), 1.0)
    assert float(found) == pytest.approx(math.log(0.4 / 0.25 + 0.1 / 0.75))
    halved = pointwise_information(student, teacher, torch.tensor([[0.25, 0.75]]), 0.5)
    assert float(halved) == pytest.approx(math.log(0.4**0.5 / 0.25 + 0.1**0.5 / 0.75))


def test_pairs_of_one_sure_cluster_tell_more_than_pairs_of_two() -> None:
    sure, even = one_hot([0, 1, 2], 3)[None], torch.full((1, 3), 1 / 3)
    same = pointwise_information(sure, sure, even, 0.6)
    torch.testing.assert_close(same, torch.full((1, 3), math.log(3)))
    other = pointwise_information(sure, sure.roll(1, dims=1), even, 0.6)
    assert bool(other.isfinite().all())
    assert bool((other < same - 10).all())


def test_a_zero_probability_has_a_finite_gradient() -> None:
    logits = torch.tensor([[[200.0, -200.0]]], requires_grad=True)
    pointwise_information(logits.softmax(dim=2), one_hot([1], 2)[None], torch.full((1, 2), 0.5), 0.6).sum().backward()
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


def test_a_pair_weighs_what_all_teachers_think_of_it() -> None:
    teacher = torch.stack([one_hot([0, 1], 2), one_hot([0, 0], 2)])
    neighbour = torch.stack([one_hot([0, 0], 2), one_hot([0, 0], 2)])
    assert pair_weight(teacher, neighbour).tolist() == [1.0, 0.5]


def test_teachers_follow_their_students_slowly_and_have_no_gradient() -> None:
    model, method = begun(teacher_momentum=0.75)
    before = method.teachers.weight.clone()
    assert torch.equal(before, method.students.weight)
    updates = method.updates(next(model.loader(VECTORS).shuffled(0)))
    next(updates).step(ALONE)
    moved = method.students.weight.detach().clone()
    assert not torch.equal(moved, before)
    assert torch.equal(method.teachers.weight, before)
    next(updates)
    torch.testing.assert_close(method.teachers.weight, before + (moved - before) / 4)
    assert not any(weight.requires_grad for weight in method.teachers.parameters())


def test_the_mean_prediction_is_a_running_one() -> None:
    _, method = begun(marginal_momentum=0.5)
    points = method.neighbourhood.points.rows[:10]
    said = method._taught(points)
    torch.testing.assert_close(method.marginal, 1 / 6 + said.mean(dim=1) / 2)


def test_the_head_with_the_smallest_loss_answers() -> None:
    model, method = begun()
    method.losses.copy_(torch.tensor([0.0, -1.0, -3.0, -2.0]))
    with torch.no_grad():
        method.teachers.weight.add_(random_prediction(16, 3))
    images = next(iter(model.loader(VECTORS).ordered()))
    torch.testing.assert_close(method.predict(images), method.teachers(method.embed(images))[2].softmax(dim=1))
