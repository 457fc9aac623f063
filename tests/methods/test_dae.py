from typing import Any

import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.dae import DAEMethod, destroy
from dccm.networks.paper import PaperEncoder
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from tests.support import seeded

SMALL: dict[str, Any] = {"n_clusters": 4, "batch_size": 40, "mini_batch": 20}


def untrained(shape: ImageShape, **settings: Any) -> tuple[Model, DAEMethod]:
    model = Model.untrained(shape, make_config("dae", overrides=SMALL | settings))
    assert isinstance(model.method, DAEMethod)
    return model, model.method


@pytest.mark.parametrize("share", [0.1, 0.25, 0.9])
def test_the_stated_share_of_pixels_is_destroyed_and_the_rest_is_whole(share: float) -> None:
    images = torch.rand(50, 3, 16, 16, generator=seeded()) + 0.01
    seen = destroy(images, share, seeded(1))
    gone = seen == 0
    assert gone.float().mean().item() == pytest.approx(share, abs=0.01)
    assert torch.equal(seen[~gone], images[~gone])


def test_nothing_is_destroyed_at_share_zero_and_gaps_differ_between_images() -> None:
    images = torch.ones(2, 1, 16, 16)
    assert torch.equal(destroy(images, 0.0, seeded()), images)
    seen = destroy(images, 0.5, seeded())
    assert not torch.equal(seen[0], seen[1])


def paper(method: DAEMethod) -> PaperEncoder:
    assert isinstance(method.encoder, PaperEncoder)
    return method.encoder


def test_levels_learn_from_their_own_loss_alone() -> None:
    model, method = untrained(ImageShape(1, 8, 8))
    batch = next(model.loader(bars(40, side=8).images).shuffled(0))
    update = next(method.updates(batch))
    torch.testing.assert_close(update.loss, update.terms["shallow"] + update.terms["deep"])
    update.terms["deep"].backward(retain_graph=True)
    assert all(parameter.grad is None for parameter in paper(method).shallow.parameters())
    assert all(parameter.grad is not None for parameter in paper(method).hidden.parameters())
    method.zero_grad()
    update.terms["shallow"].backward()
    assert all(parameter.grad is not None for parameter in paper(method).shallow.parameters())
    assert all(parameter.grad is None for parameter in paper(method).deep.parameters())


def test_gaps_are_filled_better_than_they_are_left_open() -> None:
    images = bars(80, side=12).images
    model, method = untrained(ImageShape(1, 12, 12), epochs=20, destroyed=0.4, learning_rate=3e-3)
    train(model.learner, model.loader(images), model.config.training)
    whole = next(model.loader(images).ordered())
    seen = destroy(whole, 0.4, seeded())
    with torch.no_grad():
        filled = method.map_decoder(method.encoder.feature_map(seen)).sigmoid()
    gaps = seen == 0
    error, mean_error = (filled - whole)[gaps].square().mean(), (whole - whole.mean())[gaps].square().mean()
    assert error < 0.5 * mean_error
    assert error < 0.5 * whole[gaps].square().mean()


@pytest.mark.parametrize("shape", [ImageShape(1, 8, 8), ImageShape(3, 29, 33), ImageShape(2, 64, 64)])
def test_images_of_any_shape_are_learnt_from(shape: ImageShape) -> None:
    model, method = untrained(shape)
    images = torch.rand(4, *shape, generator=seeded()).mul(255).byte().permute(0, 2, 3, 1).numpy()
    update = next(method.updates(next(model.loader(images).shuffled(0))))
    update.loss.backward()
    assert update.loss.isfinite()
    assert next(paper(method).shallow.parameters()).grad.any()  # type: ignore[union-attr]
