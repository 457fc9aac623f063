import pytest
import torch

from dccm.arrays import ImageShape
from dccm.networks.decoder import Decoder, doublings
from tests.support import seeded


@pytest.mark.parametrize(
    "shape",
    [
        ImageShape(channels, height, width)
        for channels, height, width in [(1, 8, 8), (3, 9, 13), (1, 28, 28), (7, 32, 32), (3, 47, 64), (3, 64, 64)]
    ]
    + [ImageShape(3, 96, 96), ImageShape(1, 100, 131), ImageShape(64, 1, 4)],
)
def test_images_have_the_wanted_shape(shape: ImageShape) -> None:
    assert Decoder(shape, 5)(torch.randn(2, 5, generator=seeded())).shape == (2, *shape)


def test_widths_are_those_of_the_encoder_and_start_small() -> None:
    assert doublings(ImageShape(3, 32, 32)) == (256, 128, 64)
    assert doublings(ImageShape(3, 64, 64)) == doublings(ImageShape(3, 96, 96)) == (256, 128, 128, 64)
    assert Decoder(ImageShape(3, 28, 28), 5).start == (256, 4, 4)
    assert Decoder(ImageShape(3, 96, 64), 5).start == (256, 6, 4)


def test_what_is_too_much_is_cut_off_evenly() -> None:
    torch.manual_seed(0)
    whole, cut = Decoder(ImageShape(1, 32, 32), 5), Decoder(ImageShape(1, 28, 30), 5)
    cut.load_state_dict(whole.state_dict())
    features = torch.randn(3, 5, generator=seeded())
    assert torch.equal(cut(features), whole(features)[:, :, 2:30, 1:31])


def test_gradient_reaches_every_weight_and_is_finite() -> None:
    torch.manual_seed(0)
    decoder = Decoder(ImageShape(3, 16, 16), 4)
    decoder(torch.randn(6, 4, generator=seeded())).square().sum().backward()
    for name, parameter in decoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if name != "linear.bias":
            assert parameter.grad.abs().max() > 0, name
