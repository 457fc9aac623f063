from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.evaluation.metrics import accuracy
from dccm.methods.base import features_of
from dccm.methods.dec import (
    DECMethod,
    clustering_loss,
    corrupt,
    soft_assignment,
    target_distribution,
    unit_scale,
)
from dccm.runs.config import make_config
from dccm.runs.fitting import fit, new_model
from dccm.runs.model import Model
from dccm.training.loop import train
from dccm.training.update import Moment
from tests.methods.vectors import blobs
from tests.support import few_examples, random_prediction, seeded

SMALL = {"batch_size": 20, "mini_batch": 10, "n_clusters": 4, "epochs": 3}


def model(**settings: Any) -> Model:
    return Model.untrained(ImageShape(1, 8, 8), make_config("dec", overrides=SMALL | settings))


def method_of(model: Model) -> DECMethod:
    assert isinstance(model.method, DECMethod)
    return model.method


def test_soft_assignment_by_hand() -> None:
    found = soft_assignment(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
    # Kernels 1 / (1 + 1) and 1 / (1 + 9).
    torch.testing.assert_close(found, torch.tensor([[5 / 6, 1 / 6]]))


def test_target_distribution_by_hand() -> None:
    assignment = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    # Sizes f are 1.4 and 0.6. First row: 0.25 / 1.4 and 0.25 / 0.6; second row: 0.81 / 1.4 and 0.01 / 0.6.
    expected = torch.tensor([[0.3, 0.7], [0.972, 0.028]])
    torch.testing.assert_close(target_distribution(assignment), expected, atol=5e-4, rtol=0)


@few_examples
@given(st.integers(1, 30), st.integers(2, 6), st.integers(0, 99))
def test_targets_sum_to_one_and_sharpen_equal_clusters(size: int, clusters: int, seed: int) -> None:
    assignment = random_prediction(size, clusters, seed, sharpness=1.0)
    # With every row in every order of clusters, all sizes are the same.
    balanced = torch.cat([assignment.roll(shift, dims=1) for shift in range(clusters)])
    target = target_distribution(balanced)
    torch.testing.assert_close(target.sum(dim=1), torch.ones(len(balanced)))
    assert bool((target.max(dim=1).values >= balanced.max(dim=1).values - 1e-6).all())
    assert torch.equal(target.argmax(dim=1), balanced.argmax(dim=1))


def test_loss_is_zero_at_the_target_and_its_gradient_reaches_features_and_centres_only() -> None:
    features = torch.randn(6, 3, generator=seeded()).requires_grad_()
    centres = torch.randn(2, 3, generator=seeded(1)).requires_grad_()
    assignment = soft_assignment(features, centres)
    assert float(clustering_loss(assignment, assignment).detach()) == pytest.approx(0, abs=1e-6)
    target = random_prediction(6, 2).requires_grad_()
    clustering_loss(assignment, target).backward()
    assert features.grad is not None
    assert centres.grad is not None
    assert target.grad is None
    assert bool(centres.grad.any())


def test_a_feature_on_its_centre_has_a_finite_gradient() -> None:
    features = torch.zeros(2, 3, requires_grad=True)
    clustering_loss(soft_assignment(features, torch.eye(3)[:2] * 0), torch.tensor([[0.9, 0.1]] * 2)).backward()
    assert features.grad is not None
    assert bool(features.grad.isfinite().all())


def test_corruption_drops_its_share_and_keeps_the_mean() -> None:
    found = corrupt(torch.ones(50, 1, 20, 20), 0.2, seeded())
    assert float((found == 0).float().mean()) == pytest.approx(0.2, abs=0.02)
    assert float(found.mean()) == pytest.approx(1, abs=0.02)
    assert torch.equal(corrupt(found, 0.0, seeded()), found)


def test_pixels_are_brought_to_a_mean_square_of_one() -> None:
    loader = model().loader(bars(40, side=8).images)
    pixels = torch.cat(list(loader.ordered()))
    assert float((unit_scale(loader) * pixels).square().mean()) == pytest.approx(1, rel=1e-4)
    assert bool(unit_scale(model().loader(np.zeros((4, 8, 8, 1), np.uint8))).isfinite())


@pytest.mark.parametrize("network", ["dense", "conv"])
def test_the_autoencoder_learns_first_and_clusters_afterwards(network: str) -> None:
    trained = model(network=network)
    method, loader = method_of(trained), trained.loader(bars(40, side=8).images)
    kinds = []
    for epoch in range(3):
        method.before_epoch(loader, Moment(epoch, epoch / 3))
        for batch in loader.shuffled(epoch):
            method.train()
            kinds.append({id(update.optimizer) for update in method.updates(batch)})
    autoencoder, clustering = (id(optimizer) for optimizer in method.optimizers.values())
    assert kinds == [{autoencoder}] * 4 + [{clustering}] * 2


def test_centres_start_at_the_means_of_k_means_and_then_learn() -> None:
    trained = model()
    method, loader = method_of(trained), trained.loader(bars(40, side=8).images)
    method.before_epoch(loader, Moment(2, 2 / 3))
    features = torch.from_numpy(features_of(method, loader))
    nearest = soft_assignment(features, method.centres).argmax(dim=1)
    means = torch.stack([features[nearest == k].mean(dim=0) for k in range(4)])
    torch.testing.assert_close(method.centres.detach(), means, atol=1e-4, rtol=1e-4)
    before = method.centres.detach().clone()
    method.train()
    for update in method.updates(next(loader.shuffled(2))):
        update.loss.backward()
        update.optimizer.step()
    assert not torch.equal(before, method.centres)


def test_targets_are_those_of_each_image_and_renewed_with_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = model()
    method, loader = method_of(trained), trained.loader(bars(40, side=8).images)
    method.before_epoch(loader, Moment(2, 2 / 3))
    first = method.targets.rows
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def noted(assignment: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        seen.append((assignment, target))
        return clustering_loss(assignment, target)

    monkeypatch.setattr("dccm.methods.dec.clustering_loss", noted)
    assert len(list(method.updates(next(loader.shuffled(2))))) == len(seen) == 2
    # Before any step the sharpened assignment of the same image: rows fit only in the right order.
    for assignment, target in seen:
        sizes = soft_assignment(torch.from_numpy(features_of(method, loader)), method.centres).sum(dim=0)
        weight = assignment.square() / sizes
        torch.testing.assert_close(target, weight / weight.sum(dim=1, keepdim=True), atol=1e-4, rtol=1e-3)
    with torch.no_grad():
        method.centres.add_(0.5)
    method.before_epoch(loader, Moment(3, 1.0))
    assert not torch.allclose(first, method.targets.rows)


def test_a_run_that_ends_before_clustering_has_centres_all_the_same() -> None:
    found = bars(40, side=8)
    fitted = fit(found.images, make_config("dec", overrides=SMALL | {"epochs": 1}))
    assert len(set(fitted.model.predict_proba(found.images).argmax(axis=1))) > 1


def test_the_stages_share_a_budget() -> None:
    trained = model(epochs=100, budget_passes=3)
    train(trained.learner, trained.loader(bars(40, side=8).images), trained.config.training)
    assert len(method_of(trained).targets.rows) == 40


def test_a_saved_model_holds_nothing_of_the_single_images() -> None:
    fitted = fit(bars(40, side=8).images, make_config("dec", overrides=SMALL))
    assert method_of(fitted.model).targets.rows.shape == (0, 4)


def test_bars_of_two_directions_are_told_apart() -> None:
    found = bars(200, side=12, classes=2)
    assert found.labels is not None
    settings = SMALL | {"n_clusters": 2, "batch_size": 100, "mini_batch": 50, "epochs": 12}
    fitted = fit(found.images, make_config("dec", overrides=settings))
    assert accuracy(found.labels, fitted.model.predict_proba(found.images).argmax(axis=1)) > 0.9


def test_on_vectors_a_linear_layer_takes_the_place_of_the_autoencoder() -> None:
    vectors, labels = blobs(60)
    settings = {"n_clusters": 3, "mini_batch": 20, "epochs": 3, "encoder": "efficientnet-lite0"}
    config = make_config("dec", overrides=settings)
    assert (config.preset, config.settings()["network"], config.settings()["pretraining"]) == ("features", "linear", 0)
    fitted = fit(vectors, config)
    assert accuracy(labels, fitted.model.predict_proba(vectors).argmax(axis=1)) == 1
    dense = fit(vectors, make_config("dec", "paper", overrides=settings)).model
    assert dense.transform(vectors).shape == (60, 10)


@pytest.mark.parametrize(
    ("images", "settings", "words"),
    [
        (blobs(30)[0], {"network": "conv"}, "network must be 'dense' or 'linear' on vectors, got 'conv'. Take the pre"),
        (
            bars(30, side=8).images,
            {"network": "linear", "pretraining": 0.0},
            "must be 'dense' or 'conv' on pictures",
        ),
        (blobs(30)[0], {"network": "linear"}, "pretraining must be 0 with network = 'linear', which has no decoder"),
    ],
)
def test_networks_that_do_not_suit_the_images_are_refused(images: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        new_model(images, make_config("dec", "paper", overrides=SMALL | settings))
