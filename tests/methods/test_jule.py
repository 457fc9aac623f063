from itertools import pairwise
from typing import Any

import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.evaluation.metrics import accuracy
from dccm.methods.jule import JULEMethod, grouped_order, merges_needed, thumbnails, triplet_loss
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.runs.model import Model
from dccm.training.loop import train
from dccm.training.update import Moment
from tests.support import seeded

SMALL = {"batch_size": 30, "mini_batch": 15, "n_clusters": 4, "epochs": 2, "neighbours": 5}


def model(side: int = 8, **settings: Any) -> Model:
    return Model.untrained(ImageShape(1, side, side), make_config("jule", overrides=SMALL | settings))


def method_of(model: Model) -> JULEMethod:
    assert isinstance(model.method, JULEMethod)
    return model.method


def loss(features: torch.Tensor, labels: list[int], rivals: int = 1) -> torch.Tensor:
    return triplet_loss(features, torch.tensor(labels), positive_weight=2.0, margin=0.2, rivals=rivals)


def at_angles(*degrees: float) -> torch.Tensor:
    angle = torch.tensor(degrees).deg2rad()
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def test_triplet_loss_by_hand() -> None:
    # Squared distances: 0-1 is 2 - 2 cos 60° = 1; 0-2 is 2 - 2 cos 90° = 2; 1-2 is 2 - 2 cos 30° = 0.2679.
    found = loss(at_angles(0, 60, 90), [0, 0, 1])
    assert float(found) == pytest.approx(((2 * 1 - 2 + 0.2) + (2 * 1 - 0.2679 + 0.2)) / 2, abs=1e-3)


def test_a_cluster_counts_by_all_its_images() -> None:
    # Squared distances to cluster 1, at 90° and 120°: on average (2 + 3) / 2 from 0°, (0.2679 + 1) / 2 from 60°.
    found = loss(at_angles(0, 60, 90, 120), [0, 0, 1, 1])
    within = 0.26795  # Between 90° and 120°, which see cluster 0 at (2 + 0.2679) / 2 and (3 + 1) / 2.
    terms = (2 * 1 - 2.5 + 0.2, 2 * 1 - 0.63397 + 0.2, 2 * within - 1.13397 + 0.2, 2 * within - 2 + 0.2)
    assert float(found) == pytest.approx(sum(max(0.0, term) for term in terms) / 4, abs=1e-3)


def test_only_the_nearest_clusters_count() -> None:
    near, far = at_angles(0, 60, 90), at_angles(0, 60, 90, 170)
    torch.testing.assert_close(loss(far, [0, 0, 1, 2]), loss(near, [0, 0, 1]))
    assert float(loss(far, [0, 0, 1, 2], rivals=2)) < float(loss(near, [0, 0, 1]))


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_differ_on_average_are_spread_and_not_drawn_into_one_point(seed: int) -> None:
    # Twenty clusters of five images in a narrow cone, as an untrained network sees them; some have a stranger nearby.
    labels = torch.arange(100) % 20
    centres = torch.randn(20, 8, generator=seeded(seed))
    images = centres[labels] + 0.5 * torch.randn(100, 8, generator=seeded(seed + 10))
    width = torch.tensor(0.1, requires_grad=True)
    features = torch.nn.functional.normalize(torch.cat([torch.ones(100, 1), width * images], dim=1), dim=1)
    loss(features, labels.tolist(), rivals=5).backward()
    assert width.grad is not None
    assert float(width.grad) < 0  # A step makes the cone wider.


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]], ids=["a single cluster", "clusters of one image"])
def test_without_a_triplet_there_is_no_loss_and_a_finite_gradient(labels: list[int]) -> None:
    features = at_angles(0, 60, 90).requires_grad_()
    found = loss(features, labels, rivals=5)
    found.backward()
    assert float(found.detach()) == 0
    assert features.grad is not None
    assert not features.grad.any()


def test_clusters_far_apart_have_no_loss() -> None:
    assert float(loss(at_angles(0, 1, 180, 181), [0, 0, 1, 1])) == 0


def test_a_grouped_order_holds_all_images_and_clusters_in_pieces() -> None:
    labels = torch.arange(40) % 5
    order = grouped_order(labels, 4, seeded())
    assert sorted(order.tolist()) == list(range(40))
    groups = labels[order].view(10, 4)
    assert bool((groups == groups[:, :1]).all())
    assert groups[:, 0].tolist() != sorted(groups[:, 0].tolist())
    assert not torch.equal(order, grouped_order(labels, 4, seeded(1)))


def test_each_period_leaves_a_share_of_the_clusters_and_the_next_one_would_begin_with_k() -> None:
    trained = model(merge_share=0.5, n_clusters=2)
    method, loader = method_of(trained), trained.loader(bars(60, side=8).images)
    counts: list[int] = []
    while len(counts) < int(method.periods):
        method.before_epoch(loader, Moment(len(counts), len(counts) / int(method.periods)))
        counts.append(int(method.clusters.rows.max()) + 1)
    assert len(counts) > 2
    assert all(after == -(-before // 2) > 2 for before, after in pairwise(counts))
    assert -(-counts[-1] // 2) == 2


def test_clusters_stay_within_a_period() -> None:
    trained = model(merge_share=0.5)
    method, loader = method_of(trained), trained.loader(bars(60, side=8).images)
    seen = []
    for epoch, done in enumerate((0.0, 0.5, 1.0)):  # In periods.
        method.before_epoch(loader, Moment(epoch, done / int(method.periods)))
        seen.append(method.clusters.rows)
    assert torch.equal(seen[0], seen[1])
    assert len(seen[2].unique()) < len(seen[1].unique())


def test_merges_are_as_many_as_it_takes() -> None:
    assert [merges_needed(count, 10, 0.9) for count in (10, 11, 100, 101, 1000, 12909)] == [0, 1, 1, 2, 2, 4]
    assert merges_needed(40, 10, 0.5) == 2


def test_thumbnails_are_small_however_large_the_images_are() -> None:
    assert thumbnails(model(8).loader(bars(5, side=8).images)).shape == (5, 64)
    found = thumbnails(model(48).loader(bars(5, side=48).images))
    assert found.shape == (5, 256)
    pixels = torch.from_numpy(bars(5, side=48).images).float() / 255
    torch.testing.assert_close(found[:, 0], pixels[:, :3, :3, 0].mean(dim=(1, 2)))


@pytest.mark.parametrize("network", ["shared", "small"])
def test_features_have_unit_length(network: str) -> None:
    lengths = torch.linalg.norm(torch.from_numpy(model(network=network).transform(bars(10, side=8).images)), dim=1)
    torch.testing.assert_close(lengths, torch.ones(10))


def test_a_run_too_short_for_all_merges_ends_with_k_clusters() -> None:
    found = bars(60, side=8)
    fitted = fit(found.images, make_config("jule", overrides=SMALL | {"merge_share": 0.1, "epochs": 1}))
    assert len(set(fitted.model.predict_proba(found.images).argmax(axis=1))) == 4
    assert len(method_of(fitted.model).clusters.rows) == 0


def test_periods_share_a_budget() -> None:
    trained = model(epochs=100, budget_passes=6, merge_share=0.5)
    train(trained.learner, trained.loader(bars(60, side=8).images), trained.config.training)
    assert int(method_of(trained).begun) == int(method_of(trained).periods) > 1


@pytest.mark.parametrize("network", ["shared", "small"])
def test_bars_of_four_directions_are_told_apart(network: str) -> None:
    found = bars(160, side=12)
    assert found.labels is not None
    settings = SMALL | {"network": network, "batch_size": 80, "mini_batch": 40, "epochs": 4}
    fitted = fit(found.images, make_config("jule", overrides=settings))
    assert accuracy(found.labels, fitted.model.predict_proba(found.images).argmax(axis=1)) > 0.9
