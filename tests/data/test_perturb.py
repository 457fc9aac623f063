import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dccm.data import perturb as module
from dccm.data.perturb import PerturbationConfig, apply, draw, perturb, perturbed_rows
from dccm.errors import UserError
from tests.support import few_examples, seeded

STILL: dict[str, Any] = {"rotation": 0, "shift": 0, "zoom": (1, 1), "flip": False, "channel_shift": 0}
"""Every perturbation off."""


def only(**settings: Any) -> PerturbationConfig:
    return PerturbationConfig(**{**STILL, **settings})


def arrow(height: int = 8, width: int = 8) -> Tensor:
    """An arrow that points right, with a mark above its tail: no turn and no mirror image of it is the same."""
    image = torch.zeros(1, 1, height, width)
    middle = height // 2
    image[..., middle, 1 : width - 1] = 1.0
    image[..., middle - 1, width - 3] = image[..., middle + 1, width - 3] = 0.6
    image[..., 1, 1] = 0.3
    return image


def random_images(count: int = 4, channels: int = 3, height: int = 16, width: int = 16) -> Tensor:
    return torch.rand(count, channels, height, width, generator=seeded())


def draw_always(monkeypatch: pytest.MonkeyPatch, share: float, shift_share: tuple[float, float] = (0.5, 0.5)) -> None:
    """Put every draw at one share of its range; both shifts (along x, along y) at shares of their own."""

    def fixed(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> Tensor:
        shares = torch.tensor(shift_share) if len(shape) == 2 and shape[1] == 2 else torch.tensor(share)
        return shares.expand(shape) * (high - low) + low

    monkeypatch.setattr(module, "_uniform", fixed)


def spread(image: Tensor) -> tuple[float, float, float]:
    """Second moments of one image's brightness in pixels: along x, along y, and mixed."""
    height, width = image.shape
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    weight = (image / image.sum()).double()
    x, y = x - (weight * x).sum(), y - (weight * y).sum()
    return (weight * x * x).sum().item(), (weight * y * y).sum().item(), (weight * x * y).sum().item()


def blob(height: int, width: int, deviation_x: float, deviation_y: float) -> Tensor:
    y, x = torch.meshgrid(torch.arange(height) + 0.5 - height / 2, torch.arange(width) + 0.5 - width / 2, indexing="ij")
    return torch.exp(-((x / deviation_x) ** 2 + (y / deviation_y) ** 2) / 2)[None, None]


# Rotation


def test_quarter_turn_moves_every_pixel_where_the_matrix_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # At +90 degrees the place (x, y) of the output is read at (-y, x) of the input. With y downwards, row r and
    # column c come from row c and column 7 - r: the right edge becomes the top, a turn against the clock.
    draw_always(monkeypatch, share=1.0)
    image = arrow()
    turned = perturb(image, only(rotation=90), seeded())
    by_hand = torch.empty_like(image)
    for row in range(8):
        for column in range(8):
            by_hand[..., row, column] = image[..., column, 7 - row]
    torch.testing.assert_close(turned, by_hand, rtol=0, atol=1e-5)
    torch.testing.assert_close(turned, image.rot90(1, dims=(2, 3)), rtol=0, atol=1e-5)


def test_lower_end_of_the_range_turns_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_always(monkeypatch, share=0.0)
    turned = perturb(arrow(), only(rotation=90), seeded())
    torch.testing.assert_close(turned, arrow().rot90(-1, dims=(2, 3)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("angle", [20, 45, 90])
@pytest.mark.parametrize(("height", "width"), [(40, 56), (56, 40)])
def test_circle_stays_a_circle_when_an_image_that_is_not_square_turns(
    monkeypatch: pytest.MonkeyPatch, angle: float, height: int, width: int
) -> None:
    draw_always(monkeypatch, share=1.0)
    circle = blob(height, width, 4, 4)
    turned = perturb(circle, only(rotation=angle), seeded())
    assert turned.shape == circle.shape
    # Interpolation may widen a spread of 16 by at most the quarter of a pixel in each of two neighbours.
    along_x, along_y, mixed = spread(turned[0, 0])
    assert along_x == pytest.approx(16, abs=0.5)
    assert along_y == pytest.approx(16, abs=0.5)
    assert mixed == pytest.approx(0, abs=0.1)


def test_ellipse_in_an_image_that_is_not_square_swaps_its_axes_in_a_quarter_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw_always(monkeypatch, share=1.0)
    turned = perturb(blob(40, 56, 5, 3), only(rotation=90), seeded())
    along_x, along_y, _ = spread(turned[0, 0])
    assert along_x == pytest.approx(9, abs=0.5)
    assert along_y == pytest.approx(25, abs=0.5)


@few_examples
@given(rotation=st.floats(0, 45), seed=st.integers(0, 1000))
def test_turns_stay_within_the_range(rotation: float, seed: int) -> None:
    # The long axis of an ellipse shows the angle: tan 2a = 2 mixed / (along x - along y).
    turned = perturb(blob(40, 40, 6, 2).expand(4, -1, -1, -1), only(rotation=rotation), seeded(seed))
    for image in turned[:, 0]:
        along_x, along_y, mixed = spread(image)
        angle = 0.5 * torch.atan2(torch.tensor(2 * mixed), torch.tensor(along_x - along_y))
        assert angle.rad2deg().abs() <= rotation + 1


# Shift


@pytest.mark.parametrize(
    ("shares", "rows", "columns"),
    [
        ((1.0, 0.5), 0, 3),  # along x alone: a quarter of 12 columns
        ((0.5, 1.0), 2, 0),  # along y alone: a quarter of 8 rows
        ((1.0, 1.0), 2, 3),
        ((0.0, 0.5), 0, -3),
        ((0.5, 0.0), -2, 0),
    ],
)
def test_shift_moves_the_content_by_its_share_of_each_side(
    monkeypatch: pytest.MonkeyPatch, shares: tuple[float, float], rows: int, columns: int
) -> None:
    draw_always(monkeypatch, share=0.5, shift_share=shares)
    image = random_images(1, 1, 8, 12)
    moved = perturb(image, only(shift=0.25), seeded())
    by_hand = torch.empty_like(image)
    for row in range(8):
        for column in range(12):
            # Beyond the border the edge pixels go on.
            source = min(max(row + rows, 0), 7), min(max(column + columns, 0), 11)
            by_hand[0, 0, row, column] = image[0, 0, source[0], source[1]]
    torch.testing.assert_close(moved, by_hand, rtol=0, atol=1e-5)


@few_examples
@given(shift=st.floats(0, 0.3), seed=st.integers(0, 1000))
def test_shifts_stay_within_the_range_on_both_axes(shift: float, seed: int) -> None:
    height, width = 40, 60
    moved = perturb(blob(height, width, 1.5, 1.5).expand(6, -1, -1, -1), only(shift=shift), seeded(seed))
    weight = moved[:, 0] / moved[:, 0].sum(dim=(1, 2), keepdim=True)
    x = (weight.sum(dim=1) * (torch.arange(width) + 0.5)).sum(dim=1) - width / 2
    y = (weight.sum(dim=2) * (torch.arange(height) + 0.5)).sum(dim=1) - height / 2
    assert x.abs().max() <= shift * width + 0.1
    assert y.abs().max() <= shift * height + 0.1


# Zoom


def test_zoom_by_two_halves_the_slope_of_a_ramp_on_both_axes() -> None:
    # Bilinear reading of a straight ramp is exact, and a magnified image is read inside the border only.
    ramp = ((torch.arange(12) + 0.5) / 12).expand(1, 1, 12, 12)
    expected = 0.5 + (ramp - 0.5) / 2
    torch.testing.assert_close(perturb(ramp, only(zoom=(2, 2)), seeded()), expected)
    torch.testing.assert_close(perturb(ramp.mT, only(zoom=(2, 2)), seeded()), expected.mT)


def test_zoom_above_one_magnifies_and_below_one_shrinks() -> None:
    image = blob(40, 40, 3, 3)
    larger, smaller = (perturb(image, only(zoom=(zoom, zoom)), seeded()) for zoom in (2, 0.5))
    assert spread(larger[0, 0])[0] == pytest.approx(4 * 9, rel=0.05)
    assert spread(smaller[0, 0])[0] == pytest.approx(9 / 4, rel=0.15)


# Mirror image


def test_half_of_the_images_are_mirrored_left_to_right_and_none_upside_down() -> None:
    images = arrow(8, 12).expand(200, -1, -1, -1)
    mirrored = 0
    for found in perturb(images, only(flip=True), seeded()):
        same = torch.allclose(found, images[0], atol=1e-5)
        turned = torch.allclose(found, images[0].flip(2), atol=1e-5)
        assert same != turned
        mirrored += turned
    assert 70 < mirrored < 130


def test_mirrored_images_are_turned_by_the_same_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_always(monkeypatch, share=1.0)
    images = arrow().expand(50, -1, -1, -1)
    plain = arrow().rot90(1, dims=(2, 3))[0]
    found = perturb(images, only(rotation=90, flip=True), seeded())
    # The output is mirrored: turned against the clock first, then left and right swapped.
    kinds = [
        "plain" if torch.allclose(image, plain, atol=1e-5) else "mirrored"
        for image in found
        if torch.allclose(image, plain, atol=1e-5) or torch.allclose(image, plain.flip(2), atol=1e-5)
    ]
    assert len(kinds) == 50
    assert set(kinds) == {"plain", "mirrored"}


# Levels


def test_channel_shift_changes_the_level_of_each_channel_of_each_image_by_its_own_draw() -> None:
    images = torch.full((5, 3, 8, 8), 0.5)
    change = perturb(images, only(channel_shift=0.1), seeded()) - images
    assert change.abs().max() <= 0.1 + 1e-6
    levels = change.mean(dim=(2, 3))
    torch.testing.assert_close(change, levels[:, :, None, None].expand_as(change), rtol=0, atol=1e-6)
    assert levels.unique().numel() == 15


def test_brightness_is_a_factor_on_every_image() -> None:
    images = random_images()
    torch.testing.assert_close(perturb(images, only(brightness=0.95), seeded()), 0.95 * images, rtol=0, atol=1e-5)


# All together


@pytest.mark.parametrize(("height", "width"), [(16, 16), (9, 14), (1, 1)])
def test_perturbation_with_everything_off_is_the_identity(height: int, width: int) -> None:
    images = random_images(4, 3, height, width)
    torch.testing.assert_close(perturb(images, only(), seeded()), images, rtol=0, atol=1e-5)


@few_examples
@given(
    height=st.integers(1, 20),
    width=st.integers(1, 20),
    channels=st.integers(1, 5),
    strength=st.floats(0, 5),
    seed=st.integers(0, 1000),
)
def test_values_stay_between_zero_and_one_and_shapes_stay(
    height: int, width: int, channels: int, strength: float, seed: int
) -> None:
    config = PerturbationConfig(rotation=90 * strength, shift=strength, zoom=(0.1, 3), channel_shift=strength)
    images = random_images(3, channels, height, width)
    found = perturb(images, config, seeded(seed))
    assert found.shape == images.shape
    assert found.dtype == images.dtype
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize(
    "config",
    [only(rotation=20), only(shift=0.18), only(zoom=(0.85, 1.15)), only(channel_shift=0.1), PerturbationConfig()],
)
def test_every_image_has_its_own_draw(config: PerturbationConfig) -> None:
    same_image_ten_times = random_images(1).expand(10, -1, -1, -1)
    found = perturb(same_image_ten_times, config, seeded())
    for first in range(10):
        for second in range(first):
            assert (found[first] - found[second]).abs().max() > 1e-4


def test_same_seed_gives_the_same_images_and_another_seed_others() -> None:
    images = random_images()
    first, again, other = (perturb(images, PerturbationConfig(), seeded(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other, atol=1e-3)


def test_images_that_were_given_are_left_as_they_were() -> None:
    images = random_images()
    before = images.clone()
    perturb(images, PerturbationConfig(), seeded())
    perturb(images, only(brightness=0.5), seeded())
    assert torch.equal(images, before)


def test_memory_format_is_kept_and_changes_no_value() -> None:
    images = random_images()
    channels_last = images.contiguous(memory_format=torch.channels_last)
    plain = perturb(images, PerturbationConfig(), seeded())
    other = perturb(channels_last, PerturbationConfig(), seeded())
    torch.testing.assert_close(other, plain)
    assert other.is_contiguous(memory_format=torch.channels_last)
    assert plain.is_contiguous()


def test_constant_images_stay_constant_whatever_moves() -> None:
    images = torch.full((4, 3, 16, 16), 0.7)
    found = perturb(images, PerturbationConfig(rotation=180, shift=1, zoom=(0.3, 3), channel_shift=0), seeded())
    torch.testing.assert_close(found, images, rtol=0, atol=1e-5)


@pytest.mark.parametrize("zoom", [(0, 1), (-1, 1), (1.2, 0.8)])
def test_impossible_zoom_is_refused(zoom: tuple[float, float]) -> None:
    text = f"zoom must be [low, high] with 0 < low <= high, got {list(zoom)}."
    with pytest.raises(UserError, match=f"^{re.escape(text)}"):
        PerturbationConfig(zoom=zoom)


def test_drawing_and_applying_are_one_perturbation_in_two_steps() -> None:
    images = torch.rand(6, 3, 10, 12, generator=seeded())
    config = PerturbationConfig(brightness=0.9)
    drawn = draw(images.shape, config, seeded(1))
    torch.testing.assert_close(apply(images, drawn), perturb(images, config, seeded(1)), rtol=0, atol=0)


def test_an_image_gets_its_own_draw_whatever_images_are_beside_it() -> None:
    images = torch.rand(6, 3, 10, 12, generator=seeded())
    drawn = draw(images.shape, PerturbationConfig(), seeded(1))
    index = torch.tensor([4, 1])
    torch.testing.assert_close(apply(images[index], drawn.rows(index)), apply(images, drawn)[index])


def test_axes_are_zoomed_together_or_apart() -> None:
    shape = (200, 1, 16, 16)
    still = {"rotation": 0.0, "shift": 0.0, "flip": False, "channel_shift": 0.0, "zoom": (0.5, 2.0)}
    together, apart = (
        draw(shape, PerturbationConfig(zoom_axes=axes, **still), seeded()).matrices  # type: ignore[arg-type]
        for axes in ("together", "apart")
    )
    assert torch.equal(together[:, 0, 0], together[:, 1, 1])
    assert (apart[:, 0, 0] / apart[:, 1, 1]).std() > 0.3
    for matrices in (together, apart):
        assert matrices[:, (0, 1), (0, 1)].min() >= 0.5
        assert matrices[:, (0, 1), (0, 1)].max() <= 2.0


@pytest.mark.parametrize("rows", [slice(None), slice(1, None, 3)], ids=str)
def test_some_images_are_perturbed_to_the_same_bits_as_among_all(rows: slice) -> None:
    images = torch.rand(30, 3, 12, 10, generator=seeded()).contiguous(memory_format=torch.channels_last)
    perturbation = draw(images.shape, PerturbationConfig(), seeded(1))
    index = torch.randperm(30, generator=seeded(2))[:11]
    found = perturbed_rows(images, index, perturbation, rows)
    assert found.shape == (11, 3, 12, 10)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found[rows], apply(images, perturbation)[index[rows]])
