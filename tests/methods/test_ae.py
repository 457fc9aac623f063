import math
from typing import Any

import pytest
import torch
from torch import nn

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.ae import AEMethod
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from tests.support import seeded

SMALL: dict[str, Any] = {"n_clusters": 4, "batch_size": 40, "mini_batch": 20}


def untrained(shape: ImageShape, **settings: Any) -> tuple[Model, AEMethod]:
    model = Model.untrained(shape, make_config("ae", overrides=SMALL | settings))
    assert isinstance(model.method, AEMethod)
    return model, model.method


def test_images_are_found_back_better_than_by_the_mean_image() -> None:
    images = bars(80, side=8).images
    model, method = untrained(ImageShape(1, 8, 8), epochs=15)
    found = next(model.loader(images).ordered())

    def error() -> float:
        with torch.no_grad():
            return (method.train().reconstruct(found) - found).square().mean().item()

    before = error()
    train(model.learner, model.loader(images), model.config.training)
    mean_image = (found - found.mean(dim=0)).square().mean().item()
    assert before > mean_image
    assert error() < 0.5 * mean_image


def test_loss_is_the_cross_entropy_of_the_pixels() -> None:
    model, method = untrained(ImageShape(1, 8, 8))
    last = method.decoder.get_submodule("layers.double2")
    assert isinstance(last, nn.ConvTranspose2d)
    assert last.bias is not None
    last.weight.data.zero_()
    last.bias.data.fill_(math.log(3))  # Every pixel is believed to be 3/4 light.
    update = next(method.updates(next(model.loader(bars(20, side=8).images).shuffled(0))))
    light = model.loader(bars(20, side=8).images).images.mean() / 255
    assert update.loss.item() == pytest.approx(-light * math.log(3 / 4) - (1 - light) * math.log(1 / 4), rel=1e-4)
    assert update.images == 20


def test_squared_error_is_that_of_the_decoded_pixels_which_are_shown_in_their_range() -> None:
    model, method = untrained(ImageShape(1, 8, 8), loss="squared_error")
    last = method.decoder.get_submodule("layers.double2")
    assert isinstance(last, nn.ConvTranspose2d)
    assert last.bias is not None
    last.weight.data.zero_()
    last.bias.data.fill_(1.5)
    images = model.loader(bars(20, side=8).images).images / 255
    update = next(method.updates(next(model.loader(bars(20, side=8).images).shuffled(0))))
    assert update.loss.item() == pytest.approx(((1.5 - images) ** 2).mean(), rel=1e-4)
    assert (method.reconstruct(torch.rand(2, 1, 8, 8)) == 1).all()


def test_features_have_length_one_and_no_image_without_a_code_breaks_them() -> None:
    _, method = untrained(ImageShape(1, 8, 8))
    images = torch.rand(6, 1, 8, 8, generator=seeded())
    feature = method.train().embed(images)
    torch.testing.assert_close(feature.norm(dim=1), torch.ones(6))
    torch.testing.assert_close(
        feature * method.encoder(images).feature.norm(dim=1, keepdim=True), method.encoder(images).feature
    )
    norm = method.get_submodule("encoder.hidden.norm")
    assert isinstance(norm, nn.BatchNorm1d)
    norm.weight.data.zero_()
    assert not method.embed(images).any()


def test_dense_codes_are_taken_as_they_are() -> None:
    _, method = untrained(ImageShape(1, 8, 8), network="dense")
    images = torch.rand(6, 1, 8, 8, generator=seeded())
    assert method.reconstruct(images).shape == images.shape
    torch.testing.assert_close(method.embed(images), method.encoder(images))


@pytest.mark.parametrize("shape", [ImageShape(3, 9, 14), ImageShape(2, 50, 64)])
def test_images_of_any_shape_are_learnt_from(shape: ImageShape) -> None:
    model, method = untrained(shape)
    images = torch.rand(4, *shape, generator=seeded()).mul(255).byte().permute(0, 2, 3, 1).numpy()
    update = next(method.updates(next(model.loader(images).shuffled(0))))
    update.loss.backward()
    assert update.loss.isfinite()
    assert method.reconstruct(next(model.loader(images).ordered())).shape == (4, *shape)
