from typing import Any

import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.aae import AAEMethod
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from tests.support import seeded

SMALL: dict[str, Any] = {"n_clusters": 4, "batch_size": 40, "mini_batch": 20, "code_size": 2}


def untrained(**settings: Any) -> tuple[Model, AAEMethod]:
    model = Model.untrained(ImageShape(1, 8, 8), make_config("aae", overrides=SMALL | settings))
    assert isinstance(model.method, AAEMethod)
    return model, model.method


def test_reconstruction_discriminator_and_encoder_take_turns_and_images_count_once() -> None:
    model, method = untrained()
    updates = list(method.updates(next(model.loader(bars(40, side=8).images).shuffled(0))))
    names = {id(optimizer): name for name, optimizer in method.optimizers.items()}
    assert [names[id(update.optimizer)] for update in updates] == ["reconstruction", "discriminator", "generator"] * 2
    assert sum(update.images for update in updates) == 40


def test_the_discriminators_loss_does_not_reach_the_encoder_and_the_encoders_not_the_decoder() -> None:
    model, method = untrained()
    _, judged, deceived = list(method.updates(next(model.loader(bars(20, side=8).images).shuffled(0))))
    judged.loss.backward()
    assert all(parameter.grad is None for parameter in method.encoder.parameters())
    deceived.loss.backward()
    assert method.encoder.output.weight.grad is not None
    assert all(parameter.grad is None for parameter in method.decoder.parameters())


def test_prior_has_the_stated_deviation() -> None:
    _, method = untrained(prior_deviation=5.0)
    drawn = method.draw_prior(torch.zeros(20000, 2), seeded())
    assert drawn.std().item() == pytest.approx(5, rel=0.02)
    assert drawn.mean().item() == pytest.approx(0, abs=0.1)


def test_codes_come_near_the_prior_and_still_tell_images_apart() -> None:
    images = bars(80, side=8).images
    model, method = untrained(batch_size=80, epochs=30, prior_deviation=3.0, adversarial_learning_rate=1e-3)
    found = next(model.loader(images).ordered())

    def codes() -> torch.Tensor:
        with torch.no_grad():
            return method.train().embed(found)

    before = codes()
    train(model.learner, model.loader(images), model.config.training)
    after = codes()
    assert before.std(dim=0).max() < 1  # Far from the prior's 3.
    assert ((after.std(dim=0) > 2) & (after.std(dim=0) < 4.5)).all()
    assert (after.mean(dim=0).abs() < 1).all()
    with torch.no_grad():
        error = (method.decoder(after).sigmoid() - found).square().mean()
    assert error < 0.5 * (found - found.mean(dim=0)).square().mean()
