import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.errors import UserError
from dccm.networks import build_encoder
from dccm.networks.base import EncoderOutput, InputSide, LogitNorm, NetworkConfig, ShallowMap, is_encoder
from dccm.networks.paper import ARCHITECTURES, BalancedNorm, PaperEncoder, nearest_architecture
from tests.support import seeded


def images(count: int, channels: int, height: int, width: int) -> Tensor:
    return torch.rand(count, channels, height, width, generator=seeded())


def layer_list(encoder: PaperEncoder) -> list[str]:
    """Convolutions and poolings in their order, as Table 4 writes them."""
    written = []
    for module in [*encoder.shallow.modules(), *encoder.deep.modules()]:
        if isinstance(module, nn.Conv2d):
            assert module.kernel_size[0] == module.kernel_size[1]
            assert module.stride == (1, 1)
            written.append(f"conv{module.kernel_size[0]}-{module.out_channels}")
        if isinstance(module, nn.MaxPool2d):
            written.append(f"max{module.kernel_size}/{module.stride}")
    return written


@pytest.mark.parametrize(
    ("height", "width"), [(side, side) for side in (8, 12, 16, 20, 28, 32, 47, 48, 64, 80, 96, 128)] + [(40, 56)]
)
@pytest.mark.parametrize("training", [True, False])
def test_images_of_any_size_get_predictions_that_sum_to_one(height: int, width: int, training: bool) -> None:
    encoder = PaperEncoder(NetworkConfig(), ImageShape(3, height, width), 7).train(training)
    output = encoder(images(2, 3, height, width))
    assert output.prediction.shape == (2, 7)
    assert (output.prediction >= 0).all()
    torch.testing.assert_close(output.prediction.sum(dim=1), torch.ones(2))
    assert output.feature_map.shape[1] == encoder.map_channels
    assert output.feature_map.shape[2] > 1
    assert output.conv.shape[:2] == (2, 256)
    assert output.feature.shape == (2, encoder.feature_size)
    assert output.logits.shape == (2, 7)


@pytest.mark.parametrize("channels", [1, 3, 4, 7])
@pytest.mark.parametrize("side", [16, 32, 64])
def test_images_of_any_number_of_channels_work(channels: int, side: int) -> None:
    output = PaperEncoder(NetworkConfig(), ImageShape(channels, side, side), 5)(images(2, channels, side, side))
    torch.testing.assert_close(output.prediction.sum(dim=1), torch.ones(2))


SMALL = ["conv3-64", "conv3-64", "max2/2", "conv3-128", "max2/2", "conv3-256"]
LARGE = ["conv5-64", "conv5-64", "max4/4", "conv3-128", "conv3-128", "max4/4", "conv1-256"]


@pytest.mark.parametrize(
    ("side", "layers", "hidden", "map_shape"),
    [
        (32, SMALL, 64, (64, 14, 14)),  # 32 -> 30 -> 28 -> 14
        (64, LARGE, 256, (128, 12, 12)),  # 64 -> 60 -> 56 -> 14 -> 12
        (96, LARGE, 64, (128, 20, 20)),  # 96 -> 92 -> 88 -> 22 -> 20
    ],
)
def test_layers_are_those_of_table_4(side: int, layers: list[str], hidden: int, map_shape: tuple[int, ...]) -> None:
    encoder = PaperEncoder(NetworkConfig(), ImageShape(3, side, side), 10)
    assert layer_list(encoder) == layers
    output: EncoderOutput = encoder(images(2, 3, side, side))
    assert output.feature_map.shape == (2, *map_shape)
    assert output.feature.shape == (2, hidden)
    assert isinstance(encoder.hidden.linear, nn.Linear)
    assert encoder.hidden.linear.weight.shape == (hidden, 256)
    assert encoder.output.weight.shape == (10, hidden)


def test_each_convolution_is_followed_by_batch_norm_and_relu_behind_any_pooling() -> None:
    encoder = PaperEncoder(NetworkConfig(), ImageShape(3, 32, 32), 10)
    plain = [module for module in [*encoder.shallow.modules(), *encoder.deep.modules()] if not [*module.children()]]
    conv, pooled = [nn.Conv2d, nn.BatchNorm2d, nn.ReLU], [nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d, nn.ReLU]
    for module, kind in zip(plain, conv + pooled + pooled + conv, strict=True):
        assert isinstance(module, kind)


def test_relu_behind_the_pooling_is_relu_before_it_with_the_same_slopes() -> None:
    encoder = PaperEncoder(NetworkConfig(shallow_map="unpooled"), ImageShape(3, 32, 32), 10)
    other = PaperEncoder(NetworkConfig(), ImageShape(3, 32, 32), 10)
    for mine, theirs in zip(encoder.parameters(), other.parameters(), strict=True):
        mine.data.copy_(theirs.data)
    batch = images(4, 3, 32, 32)
    for network in (encoder, other):  # The first has ReLU before its first pooling, the second behind it.
        network(batch).prediction[:, 0].sum().backward()
    for mine, theirs in zip(encoder.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_kernel_that_covers_the_whole_map_is_a_product_with_the_same_slopes() -> None:
    encoder = PaperEncoder(NetworkConfig(), ImageShape(3, 20, 20), 7).double()
    *_, last = (module for module in encoder.deep.modules() if isinstance(module, nn.Conv2d))
    maps = torch.randn(4, 128, 3, 3, generator=seeded()).double().requires_grad_()
    found, expected = last(maps), nn.Conv2d.forward(last, maps)
    assert type(found.grad_fn) is not type(expected.grad_fn)
    torch.testing.assert_close(found, expected)
    wanted = (maps, last.weight)
    slope = torch.randn(4, 256, 1, 1, generator=seeded(1)).double()
    torch.testing.assert_close(torch.autograd.grad(found, wanted, slope), torch.autograd.grad(expected, wanted, slope))


@pytest.mark.parametrize(("shallow_map", "side"), [("pooled", 14), ("unpooled", 28)])
def test_shallow_map_is_taken_behind_or_before_the_pooling(shallow_map: ShallowMap, side: int) -> None:
    encoder = PaperEncoder(NetworkConfig(shallow_map=shallow_map), ImageShape(3, 32, 32), 10)
    assert layer_list(encoder) == SMALL
    assert encoder(images(2, 3, 32, 32)).feature_map.shape == (2, 64, side, side)


def test_place_of_the_shallow_map_changes_no_prediction() -> None:
    pooled = PaperEncoder(NetworkConfig(), ImageShape(3, 32, 32), 10).eval()
    unpooled = PaperEncoder(NetworkConfig(shallow_map="unpooled"), ImageShape(3, 32, 32), 10).eval()
    for mine, other in zip(unpooled.parameters(), pooled.parameters(), strict=True):
        mine.data.copy_(other.data)
    batch = images(2, 3, 32, 32)
    first, second = unpooled(batch), pooled(batch)
    torch.testing.assert_close(first.prediction, second.prediction)
    torch.testing.assert_close(nn.functional.max_pool2d(first.feature_map, 2), second.feature_map)


def test_large_networks_have_the_same_shallow_map_either_way() -> None:
    encoder = PaperEncoder(NetworkConfig(shallow_map="unpooled"), ImageShape(3, 64, 64), 10)
    assert encoder(images(2, 3, 64, 64)).feature_map.shape == (2, 128, 12, 12)


@pytest.mark.parametrize(
    ("height", "width", "side"),
    [(8, 8, 32), (47, 47, 32), (49, 49, 64), (64, 64, 64), (79, 79, 64), (81, 81, 96), (300, 300, 96), (300, 40, 32)],
)
def test_architecture_is_the_nearest_to_the_shorter_side(height: int, width: int, side: int) -> None:
    assert nearest_architecture(ImageShape(3, height, width)).side == side


@pytest.mark.parametrize(("height", "width"), [(7, 7), (7, 100), (100, 1)])
def test_images_that_are_too_small_are_refused(height: int, width: int) -> None:
    text = f"images must be at least 8 pixels on each side, got {height} x {width}. Enlarge them"
    with pytest.raises(UserError, match=f"^{re.escape(text)}"):
        PaperEncoder(NetworkConfig(), ImageShape(3, height, width), 10)


@pytest.mark.parametrize("side", [16, 32, 64])
@pytest.mark.parametrize("logit_norm", ["none", "batch", "balanced"])
def test_image_alone_and_within_a_batch_get_the_same_prediction(side: int, logit_norm: LogitNorm) -> None:
    encoder = PaperEncoder(NetworkConfig(logit_norm=logit_norm), ImageShape(3, side, side), 6)
    batch = images(5, 3, side, side)
    for _ in range(5):
        encoder(batch)  # move the population statistics away from their start
    encoder.eval()
    with torch.no_grad():
        together = encoder(batch).prediction
        alone = torch.cat([encoder(image.unsqueeze(0)).prediction for image in batch])
    torch.testing.assert_close(alone, together, rtol=0, atol=1e-5)
    assert (together[0] - together[1]).abs().max() > 1e-5


def test_batch_norm_on_the_logits_balances_the_clusters_and_leaves_the_logits_alone() -> None:
    encoder = PaperEncoder(NetworkConfig(logit_norm="batch"), ImageShape(3, 16, 16), 4)
    output: EncoderOutput = encoder(images(32, 3, 16, 16))
    norm = encoder.output_norm
    assert isinstance(norm, nn.BatchNorm1d)
    scaled = (output.logits - output.logits.mean(0)) / (output.logits.var(0, unbiased=False) + norm.eps).sqrt()
    torch.testing.assert_close(output.prediction, torch.softmax(scaled, dim=1), rtol=1e-4, atol=1e-5)


def test_balanced_norm_worked_by_hand() -> None:
    norm = BalancedNorm(2)
    norm.scale.data.fill_(3)
    # Columns have means 2 and 10 and deviations 1 and 2.
    found = norm(torch.tensor([[1.0, 8.0], [3.0, 12.0]]))
    torch.testing.assert_close(found, torch.tensor([[-3.0, -3.0], [3.0, 3.0]]), rtol=1e-4, atol=1e-4)


def test_balanced_norm_learns_one_scale_and_no_cluster_of_its_own() -> None:
    assert [tuple(parameter.shape) for parameter in BalancedNorm(7).parameters()] == [()]


def test_without_batch_norm_the_prediction_is_the_softmax_of_the_logits() -> None:
    output: EncoderOutput = PaperEncoder(NetworkConfig(), ImageShape(3, 16, 16), 4)(images(3, 3, 16, 16))
    torch.testing.assert_close(output.prediction, torch.softmax(output.logits, dim=1))


def test_outputs_are_computed_from_each_other_in_the_order_of_the_layers() -> None:
    encoder = PaperEncoder(NetworkConfig(), ImageShape(3, 32, 32), 4).eval()
    output: EncoderOutput = encoder(images(2, 3, 32, 32))
    torch.testing.assert_close(encoder.deep(output.feature_map), output.conv)
    torch.testing.assert_close(encoder.hidden(output.conv.mean(dim=(2, 3))), output.feature)
    torch.testing.assert_close(encoder.output(output.feature), output.logits)
    assert (output.feature >= 0).all()


def test_identity_start_makes_linear_layers_pass_their_first_entries_on() -> None:
    encoder = PaperEncoder(NetworkConfig(initialisation="identity"), ImageShape(3, 32, 32), 10)
    linear = [module for module in encoder.modules() if isinstance(module, nn.Linear)]
    assert len(linear) == 2
    for layer in linear:
        assert torch.equal(layer.weight, torch.eye(*layer.weight.shape))
        assert (layer.bias == 0).all()
    encoder.eval()
    output: EncoderOutput = encoder(images(2, 3, 32, 32))
    assert torch.equal(output.logits, output.feature[:, :10])


def test_identity_start_draws_convolutions_with_the_kaiming_deviation() -> None:
    torch.manual_seed(0)
    encoder = PaperEncoder(NetworkConfig(initialisation="identity"), ImageShape(3, 32, 32), 10)
    convolutions = [module for module in encoder.modules() if isinstance(module, nn.Conv2d)]
    for layer in convolutions[1:]:  # the first has too few weights for a sharp estimate
        expected = (2 / (layer.in_channels * 9)) ** 0.5
        assert layer.weight.std().item() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("side", [8, 20, 64])
def test_gradient_reaches_every_weight_and_is_finite(side: int) -> None:
    torch.manual_seed(0)
    encoder = PaperEncoder(NetworkConfig(), ImageShape(3, side, side), 4)
    output: EncoderOutput = encoder(images(6, 3, side, side))
    output.prediction[:, 0].log().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_images_get_finite_predictions(value: float) -> None:
    encoder = PaperEncoder(NetworkConfig(logit_norm="batch"), ImageShape(1, 32, 32), 4)
    prediction = encoder(torch.full((2, 1, 32, 32), value)).prediction
    torch.testing.assert_close(prediction.sum(dim=1), torch.ones(2))


@pytest.mark.parametrize(
    ("shape", "input_side", "sides", "made_for"),
    [
        (ImageShape(3, 32, 32), 24, (24, 24), 32),
        (ImageShape(3, 32, 32), 8, (8, 8), 32),  # padded, as such images are
        (ImageShape(1, 28, 28), 20, (20, 20), 32),
        (ImageShape(3, 64, 96), 32, (32, 48), 32),  # the network for what enters, not for the images
        (ImageShape(3, 96, 96), 64, (64, 64), 64),
        (ImageShape(1, 8, 8), 20, (8, 8), 32),  # never enlarged
        (ImageShape(3, 96, 96), "full", (96, 96), 96),
    ],
)
def test_large_images_enter_smaller_and_get_the_network_for_that_size(
    shape: ImageShape, input_side: InputSide, sides: tuple[int, int], made_for: int
) -> None:
    encoder = PaperEncoder(NetworkConfig(input_side=input_side), shape, 4)
    assert encoder.architecture.side == made_for
    seen = []
    encoder.shallow.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    images = torch.rand(2, *shape).to(memory_format=torch.channels_last)
    encoder(images)
    assert tuple(seen[0].shape[2:]) == sides
    assert seen[0].is_contiguous(memory_format=torch.channels_last)
    assert seen[0].mean().item() == pytest.approx(images.mean().item(), abs=0.05)


@pytest.mark.parametrize(
    ("shape", "detail", "channels", "sides"),
    [
        (ImageShape(3, 64, 64), 2, 12, (24, 24)),
        (ImageShape(3, 96, 96), 4, 48, (24, 24)),
        (ImageShape(3, 96, 96), 2, 12, (24, 24)),
        (ImageShape(1, 48, 72), 2, 4, (24, 36)),
        (ImageShape(3, 47, 47), 2, 3, (24, 24)),  # Not twice as large: shrunk alone.
        (ImageShape(3, 20, 20), 4, 3, (20, 20)),
    ],
)
def test_details_of_large_images_enter_as_channels(
    shape: ImageShape, detail: int, channels: int, sides: tuple[int, int]
) -> None:
    encoder = PaperEncoder(NetworkConfig(input_side=24, detail=detail), shape, 4)
    seen = []
    encoder.shallow.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    encoder(torch.rand(2, *shape).to(memory_format=torch.channels_last))
    assert tuple(seen[0].shape[1:]) == (channels, *sides)
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


def test_each_position_holds_the_pixels_of_its_square() -> None:
    images = torch.arange(48 * 48, dtype=torch.float32).view(1, 1, 48, 48).repeat(2, 1, 1, 1)
    encoder = PaperEncoder(NetworkConfig(input_side=24, detail=2), ImageShape(1, 48, 48), 4)
    seen = []
    encoder.shallow.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    encoder(images)
    assert seen[0][0, :, 5, 7].tolist() == images[0, 0, 10:12, 14:16].flatten().tolist()


def test_smallest_sides_are_the_smallest_that_the_convolutions_take() -> None:
    for architecture in ARCHITECTURES:
        encoder = PaperEncoder(NetworkConfig(), ImageShape(1, architecture.side, architecture.side), 4)
        encoder(torch.rand(2, 1, architecture.smallest, architecture.smallest))
        with pytest.raises(RuntimeError):
            encoder(torch.rand(2, 1, architecture.smallest - 1, architecture.smallest - 1))


def test_a_network_can_be_chosen_whatever_the_size_of_the_images() -> None:
    chosen = PaperEncoder(NetworkConfig(architecture=64), ImageShape(1, 16, 20), 4)
    assert layer_list(chosen) == LARGE
    assert chosen(images(2, 1, 16, 20)).prediction.shape == (2, 4)
    with pytest.raises(
        UserError, match=r"architecture = 96 needs images of at least 16 pixels on each side, got 8 x 8\."
    ):
        PaperEncoder(NetworkConfig(architecture=96), ImageShape(1, 8, 8), 4)


def test_width_is_a_multiple_of_the_papers_channels() -> None:
    narrow = PaperEncoder(NetworkConfig(width=0.25), ImageShape(3, 32, 32), 10)
    assert layer_list(narrow) == ["conv3-16", "conv3-16", "max2/2", "conv3-32", "max2/2", "conv3-64"]
    assert narrow.map_channels == 16
    assert narrow.feature_size == 64


def test_the_papers_encoder_keeps_the_contract() -> None:
    encoder = build_encoder(NetworkConfig(), ImageShape(3, 16, 16), 4)
    assert is_encoder(encoder)
    output = encoder.eval()(images(2, 3, 16, 16))
    feature_map = encoder.feature_map(images(2, 3, 16, 16))
    assert torch.equal(feature_map, output.feature_map)
    assert torch.equal(encoder.conv(feature_map), output.conv)
    assert torch.equal(encoder.feature(output.conv), output.feature)


@pytest.mark.parametrize(
    ("side", "settings", "words"),
    [
        (32, {}, "the paper's network for 32 pixels"),
        (96, {"input_side": 24}, "the paper's network for 32 pixels, which sees them at 24 x 24"),
        (
            96,
            {"input_side": 24, "detail": 2},
            "the paper's network for 32 pixels, which sees them at 48 x 48 in squares of 2 x 2",
        ),
    ],
)
def test_an_encoder_says_what_it_is(side: int, settings: dict[str, Any], words: str) -> None:
    assert (
        re.fullmatch(words, PaperEncoder(NetworkConfig(**settings), ImageShape(3, side, side), 4).description)
        is not None
    )
