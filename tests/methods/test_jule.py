from itertools import pairwise
from typing import Any

import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.evaluation.metrics import accuracy
from dccm.methods.jule import JULEMethod, grouped_order, thumbnails, triplet_loss
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


def loss(features: torch.Tensor, labels: list[int], negatives: int = 1) -> torch.Tensor:
    return triplet_loss(features, torch.tensor(labels), positive_weight=2.0, margin=0.2, negatives=negatives)


def at_angles(*degrees: float) -> torch.Tensor:
    angle = torch.tensor(degrees).deg2rad()
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def test_triplet_loss_by_hand() -> None:
    # Squared distances: 0-1 is 2 - 2 cos 60° = 1; 0-2 is 2 - 2 cos 90° = 2; 1-2 is 2 - 2 cos 30° = 0.2679.
    found = loss(at_angles(0, 60, 90), [0, 0, 1])
    assert float(found) == pytest.approx(((2 * 1 - 2 + 0.2) + (2 * 1 - 0.2679 + 0.2)) / 2, abs=1e-3)


def test_only_the_nearest_images_of_other_clusters_count() -> None:
    near, far = at_angles(0, 60, 90), at_angles(0, 60, 90, 170)
    torch.testing.assert_close(loss(far, [0, 0, 1, 2]), loss(near, [0, 0, 1]))
    assert float(loss(far, [0, 0, 1, 2], negatives=2)) < float(loss(near, [0, 0, 1]))


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]], ids=["a single cluster", "clusters of one image"])
def test_without_a_triplet_there_is_no_loss_and_a_finite_gradient(labels: list[int]) -> None:
    features = at_angles(0, 60, 90).requires_grad_()
    found = loss(features, labels, negatives=5)
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


def test_each_period_leaves_a_share_of_the_clusters_until_k_remain() -> None:
    trained = model(merge_share=0.5, n_clusters=2)
    method, loader = method_of(trained), trained.loader(bars(60, side=8).images)
    counts = []
    for epoch in range(6):
        method.before_epoch(loader, Moment(epoch, epoch / 6))
        counts.append(int(method.clusters.rows.max()) + 1)
    assert counts[0] > 4
    assert all(after == max(2, -(-before // 2)) for before, after in pairwise(counts))
    assert counts[-1] == 2


def test_clusters_stay_within_a_period() -> None:
    trained = model(merge_share=0.5, periods=3)
    method, loader = method_of(trained), trained.loader(bars(60, side=8).images)
    seen = []
    for epoch in range(3):
        method.before_epoch(loader, Moment(epoch, epoch / 6))
        seen.append(method.clusters.rows)
    assert torch.equal(seen[0], seen[1])
    assert len(seen[2].unique()) < len(seen[1].unique())


def test_thumbnails_are_small_however_large_the_images_are() -> None:
    assert thumbnails(model(8).loader(bars(5, side=8).images)).shape == (5, 64)
    found = thumbnails(model(48).loader(bars(5, side=48).images))
    assert found.shape == (5, 256)
    pixels = torch.from_numpy(bars(5, side=48).images).float() / 255
    torch.testing.assert_close(found[:, 0], pixels[:, :3, :3, 0].mean(dim=(1, 2)))


def test_features_have_unit_length() -> None:
    lengths = torch.linalg.norm(torch.from_numpy(model().transform(bars(10, side=8).images)), dim=1)
    torch.testing.assert_close(lengths, torch.ones(10))


def test_a_run_too_short_for_all_merges_ends_with_k_clusters() -> None:
    found = bars(60, side=8)
    fitted = fit(found.images, make_config("jule", overrides=SMALL | {"merge_share": 0.1, "epochs": 1}))
    assert len(set(fitted.model.predict_proba(found.images).argmax(axis=1))) == 4
    assert len(method_of(fitted.model).clusters.rows) == 0


def test_periods_share_a_budget() -> None:
    trained = model(epochs=100, budget_passes=6, periods=3)
    train(trained.learner, trained.loader(bars(60, side=8).images), trained.config.training)
    assert int(method_of(trained).begun) == 3


def test_bars_of_four_directions_are_told_apart() -> None:
    found = bars(160, side=12)
    assert found.labels is not None
    settings = SMALL | {"batch_size": 80, "mini_batch": 40, "epochs": 4, "periods": 2}
    fitted = fit(found.images, make_config("jule", overrides=settings))
    assert accuracy(found.labels, fitted.model.predict_proba(found.images).argmax(axis=1)) > 0.9
