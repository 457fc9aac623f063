import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.nat import NATMethod, best_assignment, matching_loss, noise_targets
from dccm.runs.config import make_config
from dccm.runs.fitting import fit, new_model
from dccm.runs.model import Model
from dccm.training.checkpoint import Checkpoint, CheckpointFolder
from dccm.training.loop import train
from dccm.training.update import Moment
from tests.support import few_examples, seeded

SMALL = {"n_clusters": 4, "batch_size": 24, "mini_batch": 12, "epochs": 2, "target_size": 16}
IMAGES = bars(48, side=8).images


def model(**settings: Any) -> Model:
    return Model.untrained(ImageShape(1, 8, 8), make_config("nat", overrides=SMALL | settings))


def nat(model: Model) -> NATMethod:
    assert isinstance(model.method, NATMethod)
    return model.method


def on_sphere(count: int, size: int, seed: int) -> Tensor:
    return F.normalize(torch.randn(count, size, generator=seeded(seed)))


def test_targets_lie_on_the_sphere_and_are_decided_by_the_seed() -> None:
    targets = noise_targets(500, 8, seed=3)
    torch.testing.assert_close(targets.norm(dim=1), torch.ones(500))
    assert float(targets.mean(dim=0).abs().max()) < 0.1
    assert torch.equal(targets, noise_targets(500, 8, seed=3))
    assert not torch.equal(targets, noise_targets(500, 8, seed=4))


def test_the_sum_of_distances_decides_not_the_nearest_target() -> None:
    # Both features are nearest to the first target; the second one loses more if it has to go.
    features = F.normalize(torch.tensor([[1.0, 0.3], [1.0, -0.5]]))
    targets = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert best_assignment(features, targets).tolist() == [1, 0]


@few_examples
@given(size=st.integers(2, 6), seed=st.integers(0, 1000))
def test_no_other_permutation_matches_better(size: int, seed: int) -> None:
    features, targets = on_sphere(size, 3, seed), on_sphere(size, 3, seed + 1)
    chosen = best_assignment(features, targets)
    best = min(float(matching_loss(features, targets[list(p)])) for p in itertools.permutations(range(size)))
    assert sorted(chosen.tolist()) == list(range(size))
    assert float(matching_loss(features, targets[chosen])) == pytest.approx(best, abs=1e-5)


def test_the_loss_is_one_minus_the_cosine() -> None:
    features, targets = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[0.0, 1.0], [0.6, 0.8]])
    assert float(matching_loss(features, targets)) == pytest.approx((1 + 0) / 2)


def test_swapping_lowers_the_cost_of_these_images_and_leaves_the_others_alone() -> None:
    learner = nat(model())
    learner.before_epoch(model().loader(IMAGES), Moment(0, 0.0))
    index, features = torch.tensor([3, 9, 10, 30, 47]), on_sphere(5, 16, seed=5)
    before = matching_loss(features, learner.targets.rows[index])
    after = matching_loss(features, learner._swap(features, index))
    assert float(after) < float(before)
    torch.testing.assert_close(matching_loss(features, learner.targets.rows[learner.assignment.rows[index]]), after)
    others = np.setdiff1d(np.arange(48), index)
    assert learner.assignment.rows[others].tolist() == others.tolist()
    assert sorted(learner.assignment.rows[index].tolist()) == index.tolist()


def test_the_assignment_stays_a_permutation_while_the_targets_stay_put() -> None:
    trained = model()
    train(trained.learner, trained.loader(IMAGES), trained.config.training)
    learner = nat(trained)
    assert sorted(learner.assignment.rows.tolist()) == list(range(48))
    assert learner.assignment.rows.tolist() != list(range(48))
    assert torch.equal(learner.targets.rows, noise_targets(48, 16, seed=0))


def test_features_come_closer_to_their_targets() -> None:
    trained = model(epochs=12, learning_rate=0.05)
    history = train(trained.learner, trained.loader(IMAGES), trained.config.training)
    assert history[-1]["loss"] < 0.8 * history[0]["loss"]


def test_a_run_resumed_in_the_middle_of_an_epoch_ends_with_the_same_bits(tmp_path: Path) -> None:
    config = make_config("nat", overrides=SMALL | {"checkpoint_minutes": 0})
    folder = CheckpointFolder(tmp_path)
    kept: list[Checkpoint] = []
    unbroken = fit(
        IMAGES, config, checkpoints=folder, on_progress=lambda _: kept.extend(filter(None, folder.newest()[:1]))
    )
    middle = next(file for file in kept if (file.position.epoch, file.position.batch) == (1, 1))
    resumed = fit(IMAGES, config, model=new_model(IMAGES, config), resume=middle)
    assert resumed.history == unbroken.history
    for name, tensor in unbroken.model.method.state_dict().items():
        assert torch.equal(tensor, resumed.model.method.state_dict()[name]), name


def test_a_trained_model_keeps_nothing_of_single_images() -> None:
    learner = nat(fit(IMAGES, make_config("nat", overrides=SMALL | {"epochs": 1})).model)
    assert len(learner.targets.rows) == len(learner.assignment.rows) == 0
