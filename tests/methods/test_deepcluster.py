from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.base import features_of
from dccm.methods.deepcluster import (
    DeepClusterMethod,
    equal_weights,
    kmeans_labels,
    nearest,
    refilled,
    whitened,
)
from dccm.networks.paper import PaperEncoder
from dccm.runs.config import make_config
from dccm.runs.fitting import fit, new_model
from dccm.runs.model import Model
from dccm.training.checkpoint import Checkpoint, CheckpointFolder
from dccm.training.loop import train
from dccm.training.update import Moment
from tests.support import seeded

SMALL = {"n_clusters": 4, "batch_size": 24, "mini_batch": 12, "epochs": 2, "overclustering": 2}
IMAGES = bars(48, side=8).images


def model(**settings: Any) -> Model:
    return Model.untrained(ImageShape(1, 8, 8), make_config("deepcluster", overrides=SMALL | settings))


def deepcluster(model: Model) -> DeepClusterMethod:
    assert isinstance(model.method, DeepClusterMethod)
    return model.method


def blobs(*sizes: int) -> Tensor:
    """Groups of points around the axes, far apart."""
    groups = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return torch.eye(len(sizes))[groups] + 0.01 * torch.randn(len(groups), len(sizes), generator=seeded())


def test_whitening_gives_every_direction_the_same_variance_before_lengths_become_1() -> None:
    # Four corners of a long rectangle become those of a square.
    points = whitened(torch.tensor([[9.0, 1.0], [9.0, -1.0], [-9.0, 1.0], [-9.0, -1.0]]) + 5, 2)
    torch.testing.assert_close(points.abs(), torch.full((4, 2), 0.5**0.5))
    torch.testing.assert_close(points.sum(dim=0), torch.zeros(2))


def test_whitening_keeps_the_largest_components_and_blows_up_no_rounding() -> None:
    features = torch.randn(50, 4, generator=seeded()) * torch.tensor([1.0, 5.0, 0.0, 3.0])
    assert whitened(features, 256).shape == (50, 3)
    largest = whitened(features, 1)[:, 0]
    assert torch.equal(largest.abs(), torch.ones(50))
    centred = features[:, 1] - features[:, 1].mean()
    agreement = (largest.sign() == centred.sign()).float().mean()
    assert float(agreement) > 0.9 or float(agreement) < 0.1  # The sign of an axis is free.


def test_equal_features_are_clustered_without_a_fault() -> None:
    labels = kmeans_labels(whitened(torch.full((6, 3), 0.3), 3), 4, 5, seeded())
    assert labels.shape == (6,)


def test_groups_far_apart_are_found() -> None:
    labels = kmeans_labels(blobs(9, 5, 7), 3, 20, seeded(4))
    assert [len(set(group.tolist())) for group in labels.split([9, 5, 7])] == [1, 1, 1]
    assert len(set(labels.tolist())) == 3


def test_the_nearest_centre_is_by_distance_not_by_product() -> None:
    centres = torch.tensor([[1.0, 0.0], [10.0, 0.0]])
    assert nearest(torch.tensor([[2.0, 0.0], [7.0, 0.0]]), centres).tolist() == [0, 1]


def test_nearest_centres_are_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    points, centres = blobs(9, 5, 7), torch.eye(3)
    whole = nearest(points, centres)
    monkeypatch.setattr("dccm.methods.deepcluster._SCORES", 12)
    assert torch.equal(nearest(points, centres), whole)


def test_an_empty_cluster_takes_points_of_one_that_has_some() -> None:
    points = blobs(10, 1)
    centres = torch.stack([points[:10].mean(dim=0), points[10], torch.full((2,), 99.0)])
    sizes = torch.bincount(nearest(points, centres), minlength=3)
    assert sizes.tolist() == [10, 1, 0]
    after = torch.bincount(nearest(points, refilled(centres, sizes, seeded())), minlength=3)
    assert after[1] == 1
    assert after[0] + after[2] == 10
    assert bool((after > 0).all())


def test_no_cluster_stays_empty_however_k_means_starts() -> None:
    # Of many equal starting points only one keeps images: the others have to be refilled.
    points = torch.cat([torch.zeros(30, 2), torch.randn(30, 2, generator=seeded())])
    for seed in range(5):
        assert len(kmeans_labels(points, 8, 20, seeded(seed)).unique()) == 8


def test_clusters_are_drawn_equally_whatever_their_size() -> None:
    labels = torch.tensor([0, 0, 0, 2])
    torch.testing.assert_close(equal_weights(labels, 3), torch.tensor([1 / 3, 1 / 3, 1 / 3, 1.0]))


def test_a_batch_learns_from_small_and_large_clusters_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = model(batch_size=48)
    learner = deepcluster(trained)
    loader = trained.loader(IMAGES)
    learner.before_epoch(loader, Moment(0, 0.0))
    learner.pseudo_labels.fill((torch.arange(48) >= 44).long())
    seen: list[Tensor] = []

    def remembered(logits: Tensor, labels: Tensor) -> Tensor:
        seen.append(labels)
        return logits.sum()

    monkeypatch.setattr("dccm.methods.deepcluster.F.cross_entropy", remembered)
    for epoch in range(10):
        list(learner.updates(next(loader.shuffled(epoch))))
    assert float(torch.cat(seen).float().mean()) == pytest.approx(0.5, abs=0.08)


def test_pseudo_labels_are_the_clusters_of_the_features() -> None:
    trained = model(components=4)
    learner = deepcluster(trained)
    loader = trained.loader(IMAGES)
    learner.before_epoch(loader, Moment(0, 0.0))
    points = whitened(torch.from_numpy(features_of(learner, loader)), 4)
    labels = learner.pseudo_labels.rows
    assert labels.shape == (48,)
    assert set(labels.tolist()) == set(range(8))
    centres = torch.stack([points[labels == number].mean(dim=0) for number in range(8)])
    own = (points - centres[labels]).square().sum()
    shuffled = labels[torch.randperm(48, generator=seeded())]
    assert float(own) < 0.3 * float((points - centres[shuffled]).square().sum())
    assert float((nearest(points, centres) == labels).float().mean()) > 0.95


def test_the_classifier_starts_anew_with_every_epoch_and_the_encoder_goes_on() -> None:
    trained = model(epochs=1)
    learner, loader = deepcluster(trained), trained.loader(IMAGES)
    train(learner, loader, trained.config.training)
    before = {name: value.clone() for name, value in learner.named_parameters()}
    assert learner.encoder.output.weight in learner.optimizers["all"].state
    learner.before_epoch(loader, Moment(1, 0.0))
    changed = {name for name, value in learner.named_parameters() if not torch.equal(value, before[name])}
    assert changed == {"encoder.output.weight", "encoder.output.bias"}
    assert learner.encoder.output.weight not in learner.optimizers["all"].state
    assert isinstance(learner.encoder, PaperEncoder)
    assert learner.encoder.hidden[0].weight in learner.optimizers["all"].state


def test_what_comes_before_an_epoch_can_be_done_twice() -> None:
    trained = model()
    learner, loader = deepcluster(trained), trained.loader(IMAGES)
    states = []
    for _ in range(2):
        learner.before_epoch(loader, Moment(3, 0.0))
        states.append({name: value.clone() for name, value in learner.state_dict().items()})
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    learner.before_epoch(loader, Moment(4, 0.0))
    assert not torch.equal(learner.encoder.output.weight, states[0]["encoder.output.weight"])


@pytest.mark.parametrize("place", [(1, 0), (1, 1)])
def test_a_run_resumed_at_any_batch_ends_with_the_same_bits(place: tuple[int, int], tmp_path: Path) -> None:
    config = make_config("deepcluster", overrides=SMALL | {"checkpoint_minutes": 0})
    folder = CheckpointFolder(tmp_path)
    kept: list[Checkpoint] = []
    unbroken = fit(
        IMAGES, config, checkpoints=folder, on_progress=lambda _: kept.extend(filter(None, folder.newest()[:1]))
    )
    middle = next(file for file in kept if (file.position.epoch, file.position.batch) == place)
    resumed = fit(IMAGES, config, model=new_model(IMAGES, config), resume=middle)
    assert resumed.history == unbroken.history
    for name, tensor in unbroken.model.method.state_dict().items():
        assert torch.equal(tensor, resumed.model.method.state_dict()[name]), name


def test_more_pseudo_classes_than_images_train() -> None:
    trained = model(overclustering=100, epochs=1)
    train(trained.learner, trained.loader(IMAGES), trained.config.training)
    assert int(deepcluster(trained).pseudo_labels.rows.max()) < 48


def test_the_classifier_learns_within_an_epoch() -> None:
    still = {"rotation": 0.0, "shift": 0.0, "zoom": (1.0, 1.0), "flip": False, "channel_shift": 0.0}
    trained = model(batch_size=48, components=4, **still)
    learner, loader = deepcluster(trained), trained.loader(IMAGES)
    learner.before_epoch(loader, Moment(0, 0.0))
    learner.train()
    losses = []
    for epoch in range(12):
        for update in learner.updates(next(loader.shuffled(epoch))):
            update.optimizer.zero_grad()
            update.loss.backward()
            update.optimizer.step()
            losses.append(float(update.loss.detach()))
    assert sum(losses[-4:]) < 0.6 * sum(losses[:4])
