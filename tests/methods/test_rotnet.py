import math
from typing import Any

import numpy as np
import pytest
import torch

from dccm.arrays import Bytes, ImageShape
from dccm.data.synthetic import bars
from dccm.methods.rotnet import RotNetMethod, turned
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train

SMALL = {"n_clusters": 2, "batch_size": 32, "mini_batch": 16, "epochs": 1, "learning_rate": 0.02}


def model(height: int = 8, width: int = 8, **settings: Any) -> Model:
    return Model.untrained(ImageShape(1, height, width), make_config("rotnet", overrides=SMALL | settings))


def shaded_bars(count: int, side: int, seed: int) -> Bytes:
    """Lying bars that get brighter to the right: each quarter turn of them looks different."""
    images = bars(count, side, classes=1, seed=seed).images
    return (images * np.linspace(0.1, 1, side)[:, None]).astype(np.uint8)


def test_the_turns_are_quarter_turns_to_the_left_one_after_the_other() -> None:
    views, turns = turned(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
    assert views[:, 0].tolist() == [[[1, 2], [3, 4]], [[2, 4], [1, 3]], [[4, 3], [2, 1]], [[3, 1], [4, 2]]]
    assert turns.tolist() == [0, 1, 2, 3]


def test_a_view_turned_back_is_its_image() -> None:
    images = torch.rand(5, 3, 9, 9, generator=torch.Generator().manual_seed(0))
    views, turns = turned(images)
    back = [view.rot90(-int(turn), dims=(1, 2)) for view, turn in zip(views, turns, strict=True)]
    assert torch.equal(torch.stack(back), images.repeat(4, 1, 1, 1))


def test_images_that_are_not_square_give_the_turns_of_their_middle() -> None:
    images = torch.arange(12.0).view(1, 1, 2, 6)
    views, _ = turned(images)
    assert views.shape == (4, 1, 2, 2)
    assert views[0, 0].tolist() == [[2, 3], [8, 9]]


def test_an_encoder_that_knows_nothing_pays_log_4() -> None:
    fresh = model()
    assert isinstance(fresh.method, RotNetMethod)
    torch.nn.init.zeros_(fresh.method.encoder.output.weight)
    torch.nn.init.zeros_(fresh.method.encoder.output.bias)
    batch = next(fresh.loader(bars(32, side=8).images).shuffled(0))
    updates = list(fresh.method.updates(batch))
    assert [update.images for update in updates] == [16, 16]
    assert float(updates[0].loss.detach()) == pytest.approx(math.log(4), rel=1e-6)


def test_turns_of_new_bars_are_told() -> None:
    trained = model(12, 12, epochs=10)
    train(trained.learner, trained.loader(shaded_bars(64, 12, seed=0)), trained.config.training)
    trained.method.eval()  # Not calibrated: that is for upright images, as they are clustered.
    assert isinstance(trained.method, RotNetMethod)
    views, turns = turned(next(trained.loader(shaded_bars(40, 12, seed=1)).ordered()))
    guesses = trained.method.encoder(views).logits.argmax(dim=1)
    assert float((guesses == turns).float().mean()) > 0.9


def test_wide_images_train() -> None:
    trained = model(8, 14)
    images = np.zeros((32, 8, 14, 1), np.uint8)
    assert np.isfinite(train(trained.learner, trained.loader(images), trained.config.training)[-1]["loss"])
