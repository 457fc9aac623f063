from typing import Any

import pytest
import torch
import torch.nn.functional as F

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.methods.base import calibrate
from dccm.methods.decnn import (
    DeCNNConfig,
    DeCNNMethod,
    DeconvolutionLayer,
    curvature,
    objective,
    shrink,
    sparse_maps,
    standardised,
)
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from tests.support import seeded

SMALL: dict[str, Any] = {"n_clusters": 4, "batch_size": 40, "mini_batch": 20, "second_maps": 12}


def layer(channels: int = 1, maps: int = 4, side: int = 3) -> DeconvolutionLayer:
    torch.manual_seed(0)
    return DeconvolutionLayer(channels, maps, side)


def test_a_method_without_batch_norm_needs_no_look_at_all_images_for_statistics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained = Model.untrained(ImageShape(1, 8, 8), make_config("decnn", overrides=SMALL))
    monkeypatch.setattr(DeCNNMethod, "infer", lambda *_: pytest.fail("looked at images"))
    calibrate(trained.learner, trained.loader(bars(40, side=8).images))
    assert not trained.method.state_dict()["readout.centres"].numel()


def test_shrink_worked_by_hand() -> None:
    found = shrink(torch.tensor([-3.0, -1.0, 0.5, 2.0]), torch.tensor(1.0))
    assert found.tolist() == [-2.0, 0.0, 0.0, 1.0]


def test_a_single_place_in_a_map_paints_its_filter_there() -> None:
    filters = layer(side=3)
    maps = torch.zeros(1, 4, 7, 7)
    maps[0, 2, 3, 4] = 2.0
    painted = filters(maps)
    torch.testing.assert_close(painted[0, :, 2:5, 3:6], 2 * filters.filters()[2])
    assert painted.abs().sum().item() == pytest.approx(2 * filters.filters()[2].abs().sum().item(), rel=1e-5)


def test_correlating_is_the_transpose_of_painting() -> None:
    filters = layer(channels=3)
    maps, images = torch.randn(2, 4, 9, 8, generator=seeded()), torch.randn(2, 3, 9, 8, generator=seeded(1))
    torch.testing.assert_close((filters(maps) * images).sum(), (maps * filters.correlate(images)).sum())


def test_filters_have_length_one_whatever_the_weights() -> None:
    filters = layer(channels=3)
    filters.weight.data.mul_(7)
    torch.testing.assert_close(filters.filters().flatten(1).norm(dim=1), torch.ones(4))


def test_curvature_bounds_what_painting_can_add() -> None:
    filters = layer(channels=2, maps=6)
    maps = torch.randn(1, 6, 16, 16, generator=seeded())
    for _ in range(100):  # Power iteration: towards the maps that paint most.
        maps = F.normalize(filters.correlate(filters(maps)).flatten(1)).view_as(maps)
    largest = filters(maps).square().sum().item()
    assert 0.7 * curvature(filters.filters()).item() < largest <= curvature(filters.filters()).item()


def test_a_filter_of_one_pixel_has_curvature_one() -> None:
    assert curvature(torch.ones(1, 1, 1, 1)).item() == pytest.approx(1.05)


def test_maps_of_one_pixel_filters_are_shrunk_images() -> None:
    # The minimum of (z - x)² / 2 + s |z| is x, nearer to 0 by s.
    images = torch.randn(2, 1, 5, 5, generator=seeded())
    filters = DeconvolutionLayer(1, 1, 1)
    filters.weight.data.fill_(1)
    found = sparse_maps(filters, images, sparsity=0.4, steps=60)
    torch.testing.assert_close(found, shrink(images, torch.tensor(0.4)), rtol=0, atol=1e-4)


def test_more_steps_lower_the_objective_and_none_leave_nothing_behind() -> None:
    filters, images = layer(maps=6), standardised(torch.rand(3, 1, 12, 12, generator=seeded()))
    values = [
        objective(filters(maps), images, maps, 0.3).item()
        for maps in (sparse_maps(filters, images, 0.3, steps) for steps in (0, 2, 10, 50))
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.8 * values[0]


def test_codes_are_sparse_and_sparser_with_more_weight_on_it() -> None:
    model = Model.untrained(ImageShape(1, 16, 16), make_config("decnn", overrides=SMALL | {"epochs": 3}))
    images = bars(80, side=16).images
    history = train(model.learner, model.loader(images), model.config.training)
    assert history[-1]["loss"] < history[0]["loss"]
    assert isinstance(model.method, DeCNNMethod)
    (below, maps), (middle, deep) = model.method.infer(next(model.loader(images).ordered()))
    assert (maps == 0).float().mean() > 0.7
    assert (deep == 0).float().mean() > 0.7
    # And yet they say what is in the image.
    assert (model.method.first(maps) - below).square().mean() < 0.5 * below.square().mean()
    assert (model.method.second(deep) - middle).square().mean() < 0.7 * middle.square().mean()
    fewer = sparse_maps(model.method.first, below, 3.0, 10)
    assert (fewer != 0).sum() < (maps != 0).sum()


def test_huge_sparsity_leaves_empty_maps() -> None:
    maps = sparse_maps(layer(), torch.rand(2, 1, 8, 8, generator=seeded()), 1e6, 3)
    assert not maps.any()


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_images_of_one_colour_become_zero(value: float) -> None:
    torch.testing.assert_close(
        standardised(torch.full((2, 3, 8, 8), value)), torch.zeros(2, 3, 8, 8), rtol=0, atol=1e-3
    )


@pytest.mark.parametrize("shape", [ImageShape(1, 8, 8), ImageShape(3, 21, 17)])
def test_features_are_mean_strengths_in_quarters_and_take_no_gradient(shape: ImageShape) -> None:
    method = Model.untrained(shape, make_config("decnn", overrides=SMALL)).method
    feature = method.embed(torch.rand(2, *shape, generator=seeded()))
    assert feature.shape == (2, 48)
    assert (feature >= 0).all()
    assert not feature.requires_grad


def test_a_filter_has_a_middle() -> None:
    with pytest.raises(UserError, match=r"^filter_side must be odd, got 4\. The default is 7\.$"):
        DeCNNConfig(filter_side=4)
