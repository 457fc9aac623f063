import math

import pytest
import torch
from torch import nn

from dccm.arrays import ImageShape
from dccm.errors import UserError
from dccm.networks.discriminator import (
    Discriminator,
    PairDiscriminator,
    discriminator_loss,
    generator_loss,
    uniform_noise,
)
from tests.support import seeded

SHAPES = [
    ImageShape(1, 8, 8),
    ImageShape(3, 9, 13),
    ImageShape(1, 28, 28),
    ImageShape(3, 64, 48),
    ImageShape(2, 96, 96),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_image_and_every_pair_gets_a_score(shape: ImageShape) -> None:
    images, code = torch.rand(2, *shape, generator=seeded()), torch.randn(2, 5, generator=seeded())
    output = Discriminator(shape)(images)
    assert output.score.shape == (2,)
    assert output.conv.shape[:2] == (2, 256)
    assert PairDiscriminator(shape, 5)(images, code).shape == (2,)


def test_layers_follow_dcgan_with_stride_two_and_leaky_relu() -> None:
    layers = [*Discriminator(ImageShape(3, 32, 32)).halvings]
    assert [type(layer) for layer in layers] == [nn.Conv2d, nn.LeakyReLU] * 3
    assert all(layer.stride == (2, 2) for layer in layers if isinstance(layer, nn.Conv2d))


def test_an_image_is_judged_alike_alone_and_in_any_batch() -> None:
    torch.manual_seed(0)
    discriminator = Discriminator(ImageShape(1, 8, 8))
    images = torch.rand(5, 1, 8, 8, generator=seeded())
    alone = torch.cat([discriminator(image.unsqueeze(0)).score for image in images])
    torch.testing.assert_close(discriminator(images).score, alone)


def test_a_pair_is_judged_by_both_of_its_parts() -> None:
    torch.manual_seed(0)
    discriminator = PairDiscriminator(ImageShape(1, 8, 8), 3).eval()
    images, code = torch.rand(2, 1, 8, 8, generator=seeded()), torch.randn(2, 3, generator=seeded())
    score = discriminator(images, code)
    assert not torch.allclose(discriminator(images.flip(0), code), score)
    assert not torch.allclose(discriminator(images, code.flip(0)), score)


def test_images_that_are_too_small_are_refused() -> None:
    with pytest.raises(UserError, match="at least 8 pixels"):
        Discriminator(ImageShape(1, 7, 8))


def test_losses_worked_by_hand() -> None:
    # Odds of 3 to 1 for the real, 1 to 3 for the fake: both called right with probability 3/4.
    real, fake = torch.full((4,), math.log(3)), torch.full((2,), -math.log(3))
    assert discriminator_loss(real, fake).item() == pytest.approx(2 * math.log(4 / 3))
    assert generator_loss(fake).item() == pytest.approx(math.log(4))


def test_an_undecided_discriminator_pays_two_bits_of_even_odds() -> None:
    assert discriminator_loss(torch.zeros(3), torch.zeros(3)).item() == pytest.approx(2 * math.log(2))


def test_the_generators_gradient_does_not_vanish_when_the_discriminator_wins() -> None:
    fake = torch.full((1,), -50.0, requires_grad=True)
    generator_loss(fake).backward()
    assert fake.grad is not None
    assert fake.grad.item() == pytest.approx(-1)


def test_noise_is_uniform_between_minus_one_and_one() -> None:
    noise = uniform_noise(1000, 20, seeded())
    assert noise.shape == (1000, 20)
    assert -1 <= noise.min() < -0.99
    assert 0.99 < noise.max() <= 1
    assert noise.mean().item() == pytest.approx(0, abs=0.02)
    assert noise.var().item() == pytest.approx(1 / 3, abs=0.01)
