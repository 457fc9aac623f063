from typing import Any

import numpy as np
import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.gan import GANMethod
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from tests.support import seeded

SMALL: dict[str, Any] = {"n_clusters": 4, "batch_size": 40, "mini_batch": 20, "noise_size": 8}


def untrained(**settings: Any) -> tuple[Model, GANMethod]:
    model = Model.untrained(ImageShape(1, 8, 8), make_config("gan", overrides=SMALL | settings))
    assert isinstance(model.method, GANMethod)
    return model, model.method


def weights(network: torch.nn.Module) -> list[np.ndarray]:
    return [parameter.detach().numpy().copy() for parameter in network.parameters()]


def changed(before: list[np.ndarray], network: torch.nn.Module) -> bool:
    return any(not np.array_equal(old, new) for old, new in zip(before, weights(network), strict=True))


def test_discriminator_and_generator_take_turns_and_images_count_once() -> None:
    model, method = untrained()
    batch = next(model.loader(bars(40, side=8).images).shuffled(0))
    updates = list(method.updates(batch))
    names = {id(optimizer): name for name, optimizer in method.optimizers.items()}
    assert [names[id(update.optimizer)] for update in updates] == ["discriminator", "generator"] * 2
    assert sum(update.images for update in updates) == 40


@pytest.mark.parametrize(
    ("turn", "learns", "rests"), [(0, "discriminator", "generator"), (1, "generator", "discriminator")]
)
def test_each_turn_moves_its_own_side_alone(turn: int, learns: str, rests: str) -> None:
    model, method = untrained()
    batch = next(model.loader(bars(40, side=8).images).shuffled(0))
    for number, update in enumerate(method.updates(batch)):
        before = {name: weights(getattr(method, name)) for name in (learns, rests)}
        update.optimizer.zero_grad()
        update.loss.backward()
        update.optimizer.step()
        if number == turn:
            assert changed(before[learns], getattr(method, learns))
            assert not changed(before[rests], getattr(method, rests))
            return


def test_painted_images_come_to_look_like_the_real_ones() -> None:
    images = np.zeros((80, 8, 8, 1), np.uint8)
    images[:, :, :4] = np.random.default_rng(0).integers(150, 250, (80, 1, 1, 1))
    model, method = untrained(batch_size=80, epochs=15, learning_rate=5e-4)
    noise = torch.rand(200, 8, generator=seeded()) * 2 - 1

    def contrast() -> float:
        """How much lighter the left half is: 0.78 in the real images."""
        with torch.no_grad():
            painted = method.train().paint(noise)
        return (painted[..., :4].mean() - painted[..., 4:].mean()).item()

    assert abs(contrast()) < 0.1
    train(model.learner, model.loader(images), model.config.training)
    assert 0.5 < contrast() < 0.95


def test_features_are_the_largest_values_of_the_last_convolution() -> None:
    _, method = untrained()
    method.eval()
    images = torch.rand(3, 1, 8, 8, generator=seeded())
    assert torch.equal(method.embed(images), method.discriminator(images).conv.amax(dim=(2, 3)))
    assert method.embed(images).shape == (3, 256)
