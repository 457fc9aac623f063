from typing import Any

import numpy as np
import torch

from dccm.arrays import Bytes, ImageShape
from dccm.data.synthetic import bars
from dccm.methods.bigan import BiGANMethod
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train

SMALL: dict[str, Any] = {"n_clusters": 4, "batch_size": 40, "mini_batch": 20, "code_size": 2}


def untrained(**settings: Any) -> tuple[Model, BiGANMethod]:
    model = Model.untrained(ImageShape(1, 8, 8), make_config("bigan", overrides=SMALL | settings))
    assert isinstance(model.method, BiGANMethod)
    return model, model.method


def halves(count: int) -> Bytes:
    """Images of which the left or the right half is light."""
    images = np.zeros((count, 8, 8, 1), np.uint8)
    images[::2, :, :4] = 230
    images[1::2, :, 4:] = 230
    return images


def test_discriminator_and_the_other_two_take_turns_and_images_count_once() -> None:
    model, method = untrained()
    updates = list(method.updates(next(model.loader(bars(40, side=8).images).shuffled(0))))
    names = {id(optimizer): name for name, optimizer in method.optimizers.items()}
    assert [names[id(update.optimizer)] for update in updates] == ["discriminator", "generator"] * 2
    assert sum(update.images for update in updates) == 40


def test_the_discriminators_loss_reaches_neither_encoder_nor_generator_and_theirs_reaches_both() -> None:
    model, method = untrained()
    judged, deceived = list(method.updates(next(model.loader(bars(20, side=8).images).shuffled(0))))
    judged.loss.backward()
    for network in (method.encoder, method.generator):
        assert all(parameter.grad is None for parameter in network.parameters())
    deceived.loss.backward()
    for weight in (method.encoder.output.weight, method.generator.linear.weight):
        assert weight.grad is not None
        assert weight.grad.any()


def test_what_one_side_wins_the_other_loses() -> None:
    _, method = untrained()
    learning = {name: {id(p) for g in o.param_groups for p in g["params"]} for name, o in method.optimizers.items()}
    assert not learning["discriminator"] & learning["generator"]
    assert learning["discriminator"] | learning["generator"] == {id(p) for p in method.parameters()}


def inversion(model: Model, method: BiGANMethod, images: Bytes) -> float:
    """Error of images painted from their own codes over that from the next ones', where light and dark change sides."""
    found = next(model.loader(images).ordered())
    with torch.no_grad():
        painted = method.train().paint(method.embed(found))
    own, other = ((image - found).square().mean() for image in (painted, painted.roll(1, dims=0)))
    return float(own / other)


def test_the_encoder_inverts_the_generator() -> None:
    """In most runs: a game of two may also settle with light and dark swapped, and rounding decides which one does."""
    images = halves(80)
    before, after = [], []
    for seed in range(5):
        model, method = untrained(batch_size=80, epochs=10, learning_rate=1e-3, seed=seed)
        before.append(inversion(model, method, images))
        train(model.learner, model.loader(images), model.config.training)
        after.append(inversion(model, method, images))
    assert min(before) > 0.8  # Nothing is inverted yet.
    assert np.median(after) < 0.1
