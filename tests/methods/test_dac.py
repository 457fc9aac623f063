from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.evaluation.metrics import accuracy
from dccm.methods.dac import LAST, Pairs, choose_pairs, pair_loss, thresholds
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.runs.model import Model
from dccm.training.update import Update
from tests.methods.vectors import blobs
from tests.support import few_examples, one_hot, random_similarity

SMALL = {"batch_size": 30, "mini_batch": 10, "n_clusters": 4, "epochs": 1}


def model(**settings: Any) -> Model:
    return Model.untrained(ImageShape(1, 8, 8), make_config("dac", overrides=SMALL | settings))


def updates_of(model: Model, done: float = 0.0) -> list[Update]:
    batch = next(model.loader(bars(30, side=8).images).shuffled(0))
    model.method.train()
    return list(model.learner.updates(replace(batch, done=done)))


@pytest.mark.parametrize(("growth", "upper", "lower"), [(0.0, 0.95, 0.455), (0.2, 0.75, 0.475), (LAST, 0.5, 0.5)])
def test_thresholds_are_the_papers(growth: float, upper: float, lower: float) -> None:
    assert thresholds(growth) == pytest.approx((upper, lower))


@pytest.mark.parametrize(("done", "growth"), [(0.0, 0.0), (0.2, LAST / 2), (0.4, LAST), (1.0, LAST)])
def test_lambda_grows_over_its_share_of_the_run(monkeypatch: pytest.MonkeyPatch, done: float, growth: float) -> None:
    seen: list[float] = []

    def noted(value: float) -> tuple[float, float]:
        seen.append(value)
        return thresholds(value)

    monkeypatch.setattr("dccm.methods.dac.thresholds", noted)
    updates_of(model(meeting=0.4), done=done)
    assert seen == pytest.approx([growth])


def test_a_pair_is_alike_different_or_left_out() -> None:
    values = torch.tensor([[1.0, 0.95, 0.7], [0.95, 1.0, 0.4], [0.7, 0.4, 1.0]])
    pairs = choose_pairs(values, 0.95, 0.455)
    assert pairs.alike.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert pairs.chosen.tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]


@few_examples
@given(st.integers(2, 12), st.integers(0, 99), st.floats(0, LAST - 0.01), st.floats(0.001, 0.01))
def test_a_chosen_pair_stays_chosen_as_lambda_grows(size: int, seed: int, growth: float, more: float) -> None:
    values = random_similarity(size, seed)
    before, after = (choose_pairs(values, *thresholds(g)) for g in (growth, growth + more))
    assert bool((after.chosen >= before.chosen).all())
    assert torch.equal(after.alike * before.chosen, before.alike)


def test_at_the_end_hardly_a_pair_is_left_out() -> None:
    pairs = choose_pairs(random_similarity(40), *thresholds(LAST))
    assert bool((pairs.chosen == 1).all())


def test_left_out_pairs_have_no_gradient() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), requires_grad=True)
    chosen = torch.zeros(4, 4)
    chosen[0, 1] = chosen[1, 0] = 1
    pair_loss(logits.softmax(dim=1), Pairs(torch.zeros(4, 4), chosen)).backward()
    assert logits.grad is not None
    assert logits.grad[:2].abs().sum(dim=1).gt(1e-4).all()
    assert not logits.grad[2:].any()


def test_loss_by_hand() -> None:
    prediction = torch.tensor([[1.0, 0.0], [0.6, 0.8]]) / torch.tensor([[1.0], [1.4]])  # Their cosine is 0.6.
    nothing = 1e-5
    alike = pair_loss(prediction, Pairs(torch.ones(2, 2), torch.ones(2, 2)))
    apart = pair_loss(prediction, Pairs(torch.eye(2), torch.ones(2, 2)))
    assert float(alike) == pytest.approx(2 * 0.510826 / 4, abs=nothing)  # -log 0.6
    assert float(apart) == pytest.approx(2 * 0.916291 / 4, abs=nothing)  # -log 0.4


def test_sure_and_right_predictions_have_no_loss_and_opposite_ones_a_finite_one() -> None:
    prediction = one_hot([0, 0, 1], 2)
    right = torch.tensor([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert float(pair_loss(prediction, Pairs(right, torch.ones(3, 3)))) < 1e-5
    assert bool(pair_loss(prediction, Pairs(1 - right, torch.ones(3, 3))).isfinite())


def test_pairs_of_some_images_are_the_rows_and_columns_of_these() -> None:
    pairs = choose_pairs(random_similarity(6), 0.7, 0.4)
    index = torch.tensor([4, 1])
    some = pairs.among(index)
    for part, whole in zip(some, pairs):
        assert part.tolist() == [[float(whole[i, j]) for j in (4, 1)] for i in (4, 1)]


def test_targets_come_from_clean_images_and_learning_from_perturbed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for factor in (0.5, 1.0):
        monkeypatch.setattr("dccm.methods.dac.perturb", lambda images, *_, factor=factor: images.pow(factor))
        runs.append(updates_of(model()))
    first, second = runs
    assert first[0].watched is not None
    assert second[0].watched is not None
    assert torch.equal(first[0].watched.linked, second[0].watched.linked)
    assert not torch.equal(first[0].loss, second[0].loss)


def test_a_large_batch_gives_an_update_for_each_mini_batch_and_use() -> None:
    assert [update.images for update in updates_of(model(uses=2))] == [10] * 6


def test_bars_of_four_directions_are_told_apart() -> None:
    found = bars(200, side=12)
    assert found.labels is not None
    settings = SMALL | {"batch_size": 100, "mini_batch": 20, "epochs": 15, "flip": False}
    fitted = fit(found.images, make_config("dac", overrides=settings))
    assert accuracy(found.labels, fitted.model.predict_proba(found.images).argmax(axis=1)) > 0.9


def test_a_head_on_vectors_begins_where_k_means_ends_and_is_not_perturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.methods.dac.perturb", lambda *_: pytest.fail("a vector was perturbed"))
    vectors, labels = blobs(90, classes=6)
    settings: dict[str, Any] = {"n_clusters": 6, "mini_batch": 30, "encoder": "efficientnet-lite0"}
    begun = fit(vectors, make_config("dac", overrides=settings | {"epochs": 1, "learning_rate": 1e-9})).model
    assert accuracy(labels, begun.predict_proba(vectors).argmax(axis=1)) > 0.9
