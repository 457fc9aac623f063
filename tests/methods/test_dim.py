import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.dim import DIMMethod, other_pairs
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from tests.support import seeded

SMALL = {"n_clusters": 4, "batch_size": 32, "mini_batch": 16, "epochs": 1, "learning_rate": 1e-3}
CPU = torch.device("cpu")


def model(side: int = 8, **settings: Any) -> Model:
    return Model.untrained(ImageShape(1, side, side), make_config("dim", overrides=SMALL | settings))


def dim(model: Model) -> DIMMethod:
    assert isinstance(model.method, DIMMethod)
    return model.method


def images_of(count: int, side: int = 8) -> torch.Tensor:
    return torch.from_numpy(bars(count, side=side).images).permute(0, 3, 1, 2).float() / 255


def test_other_pairs_are_the_next_images_in_a_circle() -> None:
    pairs = other_pairs(3, 2, CPU)
    assert list(zip(pairs.anchor.tolist(), pairs.partner.tolist())) == [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]
    assert pairs.weight.tolist() == [1] * 6


@pytest.mark.parametrize(("size", "count"), [(2, 1), (7, 3), (5, 50)])
def test_no_image_is_its_own_negative_and_all_maps_are_used_equally(size: int, count: int) -> None:
    pairs = other_pairs(size, count, CPU)
    assert not bool((pairs.anchor == pairs.partner).any())
    assert len(set(zip(pairs.anchor.tolist(), pairs.partner.tolist()))) == len(pairs.anchor)
    assert torch.bincount(pairs.partner).tolist() == [min(count, size - 1)] * size


@pytest.mark.parametrize("negatives", [1, 2])
def test_the_loss_is_the_formula_worked_pair_by_pair(negatives: int) -> None:
    learner = dim(model(negatives=negatives))
    images = images_of(3)
    loss = learner._loss(images, seeded())
    with torch.no_grad():
        output = learner.encoder(images)
        joint: list[float] = []
        marginal: list[float] = []
        for feature in range(3):
            for of_map in [feature, *((feature + step) % 3 for step in range(1, negatives + 1))]:
                for place in output.feature_map[of_map].flatten(1).T:
                    inner = learner.critic.of_map(place) + learner.critic.of_feature(output.feature[feature])
                    score = learner.critic.score(F.relu(learner.critic.middle(F.relu(inner))))
                    (joint if of_map == feature else marginal).append(float(score))
    estimate = np.mean([-math.log1p(math.exp(-s)) for s in joint]) - np.mean(
        [math.log1p(math.exp(s)) for s in marginal]
    )
    assert float(loss.detach()) == pytest.approx(-estimate, rel=1e-5)


def test_a_critic_that_knows_nothing_pays_2_log_2() -> None:
    learner = dim(model())
    torch.nn.init.zeros_(learner.critic.score.weight)
    torch.nn.init.zeros_(learner.critic.score.bias)
    assert float(learner._loss(images_of(16), seeded()).detach()) == pytest.approx(2 * math.log(2), rel=1e-5)


def test_encoder_and_critic_learn_from_the_same_loss() -> None:
    learner = dim(model(critic_positions=3))
    learner._loss(images_of(16), seeded()).backward()
    unused = {"encoder.output.weight", "encoder.output.bias"}
    for name, parameter in learner.named_parameters():
        assert (parameter.grad is None) == (name in unused), name


def test_the_loss_falls_below_chance_for_new_images_too() -> None:
    trained = model(epochs=8, critic_positions=6)
    history = train(trained.learner, trained.loader(bars(96, side=8).images), trained.config.training)
    assert history[-1]["loss"] < history[0]["loss"]
    new = next(trained.loader(bars(32, side=8, seed=1).images).shuffled(0)).images
    trained.method.eval()
    assert float(dim(trained)._loss(new, seeded()).detach()) < 0.9 * 2 * math.log(2)
