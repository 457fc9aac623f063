import math
from typing import Any

import numpy as np
import pytest
import torch

from dccm.errors import UserError
from dccm.evaluation.metrics import accuracy
from dccm.methods.turtle import TURTLEMethod, labelling_loss, learn
from dccm.networks.components import LinearHeads
from dccm.runs.config import make_config
from dccm.runs.fitting import fit, new_model
from dccm.runs.model import Model
from dccm.training.update import Moment
from tests.methods.vectors import blobs
from tests.support import random_prediction, seeded

VECTORS, LABELS = blobs(60)
SMALL = {"n_clusters": 3, "steps": 5, "encoder": "efficientnet-lite0"}


def begun(**settings: Any) -> tuple[Model, TURTLEMethod]:
    model = new_model(VECTORS, make_config("turtle", overrides=SMALL | settings))
    assert isinstance(model.method, TURTLEMethod)
    model.method.before_epoch(model.loader(VECTORS), Moment(0, 0.0))
    return model, model.method


def test_the_loss_is_the_cross_entropy_of_each_space() -> None:
    logits = torch.tensor([[[0.0, 0.0]], [[math.log(3), 0.0]]])
    found = labelling_loss(logits, torch.tensor([[0.25, 0.75]]))
    assert float(found) == pytest.approx(math.log(2) - 0.25 * math.log(0.75) - 0.75 * math.log(0.25))


@pytest.mark.parametrize("steps", [1, 7])
def test_the_written_down_gradient_is_that_of_autograd(steps: int) -> None:
    points, labelling = torch.randn(12, 4, generator=seeded()), random_prediction(12, 3)
    written, followed = LinearHeads(1, 4, 3), LinearHeads(1, 4, 3)
    followed.load_state_dict(written.state_dict())
    learn(written, points, labelling, steps, 0.5)
    descent = torch.optim.SGD(followed.parameters(), lr=0.5)
    for _ in range(steps):
        descent.zero_grad()
        labelling_loss(followed(points), labelling).backward()
        descent.step()
    torch.testing.assert_close(written.weight, followed.weight)
    torch.testing.assert_close(written.bias, followed.bias)


def test_cold_classifiers_forget_what_they_learnt_before() -> None:
    moved = {}
    for start in ("cold", "warm"):
        model, method = begun(inner_start=start)
        batch = next(model.loader(VECTORS).shuffled(0))
        points = [method.embed(batch.images)]
        labelling = random_prediction(len(points[0]), 3)
        method._learn(points, labelling)
        once = method._spaces[0].classifier.weight.clone()
        method._learn(points, labelling)
        moved[start] = not torch.equal(once, method._spaces[0].classifier.weight)
    assert moved == {"cold": False, "warm": True}


def test_the_labelling_learns_and_classifiers_have_no_gradient() -> None:
    model, method = begun()
    updates = list(method.updates(next(model.loader(VECTORS).shuffled(0))))
    assert [update.images for update in updates] == [60] * 5
    updates[0].loss.backward()
    space = method._spaces[0]
    assert space.labelling.weight.grad is not None
    assert bool(space.labelling.weight.grad.any())
    assert space.classifier.weight.grad is None


def test_two_spaces_have_components_of_their_own_and_one_labelling() -> None:
    other, _ = blobs(60, size=8, seed=1)
    both = np.concatenate([VECTORS, other], axis=3)
    settings = SMALL | {"first_space": 16, "epochs": 2, "steps": 100}
    model = fit(both, make_config("turtle", overrides=settings)).model
    assert isinstance(model.method, TURTLEMethod)
    assert [space.components.mean.shape[0] for space in model.method._spaces] == [16, 8]
    assert model.transform(both).shape == (60, 24)
    assert accuracy(LABELS, model.predict_proba(both).argmax(axis=1)) > 0.95


def test_a_first_space_of_all_numbers_is_refused() -> None:
    with pytest.raises(UserError, match="first_space must be below the 16 numbers of a vector, got 16. Set it to how"):
        begun(first_space=16)
