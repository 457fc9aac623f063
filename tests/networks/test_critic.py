import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dccm.networks.critic import HIDDEN, Critic, map_positions
from tests.support import few_examples, permutation, seeded


def scores_by_convolution(critic: Critic, feature_map: Tensor, feature: Tensor) -> Tensor:
    """The paper's words: the feature at every position of the map, concatenated, then three 1x1 convolutions."""
    height, width = feature_map.shape[2:]
    replicated = feature[:, :, None, None].expand(-1, -1, height, width)
    both = torch.cat([feature_map, replicated], dim=1)
    first = torch.cat([critic.of_map.weight, critic.of_feature.weight], dim=1)[:, :, None, None]
    hidden = F.relu(F.conv2d(both, first, critic.of_map.bias))
    hidden = F.relu(F.conv2d(hidden, critic.middle.weight[:, :, None, None], critic.middle.bias))
    return F.conv2d(hidden, critic.score.weight[:, :, None, None], critic.score.bias).flatten(1)


@pytest.mark.parametrize(("channels", "feature_size", "side"), [(64, 64, 6), (128, 256, 3), (3, 10, 1)])
def test_critic_equals_three_convolutions_on_map_and_replicated_feature(
    channels: int, feature_size: int, side: int
) -> None:
    critic = Critic(channels, feature_size)
    feature_map = torch.randn(4, channels, side, side, generator=seeded())
    feature = torch.randn(4, feature_size, generator=seeded(1))
    maps, features = torch.tensor([0, 1, 2, 3, 0, 0, 3]), torch.tensor([0, 1, 2, 3, 3, 1, 1])
    found = critic(map_positions(feature_map, None, seeded()), feature, maps, features)
    expected = scores_by_convolution(critic, feature_map[maps], feature[features])
    assert found.shape == (7, side * side)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_critic_has_the_widths_of_the_paper() -> None:
    critic = Critic(64, 32)
    weights = {name: tuple(parameter.shape) for name, parameter in critic.named_parameters() if "weight" in name}
    assert HIDDEN == 512
    assert weights == {
        "of_map.weight": (512, 64),
        "of_feature.weight": (512, 32),
        "middle.weight": (512, 512),
        "score.weight": (1, 512),
    }


@few_examples
@given(seed=st.integers(0, 10_000))
def test_scores_follow_the_order_of_pairs_and_of_positions(seed: int) -> None:
    critic = Critic(4, 3)
    positions, features = torch.randn(5, 6, 4, generator=seeded(seed)), torch.randn(5, 3, generator=seeded(seed + 1))
    maps, anchors = torch.arange(5), permutation(5, seed)
    expected = critic(positions, features, maps, anchors)
    pairs, places = permutation(5, seed + 1), permutation(6, seed + 2)
    torch.testing.assert_close(critic(positions, features, maps[pairs], anchors[pairs]), expected[pairs])
    torch.testing.assert_close(critic(positions[:, places], features, maps, anchors), expected[:, places])


def test_list_of_positions_holds_the_channels_of_each_place_row_by_row() -> None:
    # Channel 0 counts the places, channel 1 is ten times as much.
    places = torch.arange(6.0).view(1, 1, 2, 3)
    found = map_positions(torch.cat([places, 10 * places], dim=1), None, seeded())
    assert found.tolist() == [[[0, 0], [1, 10], [2, 20], [3, 30], [4, 40], [5, 50]]]


@pytest.mark.parametrize("count", [None, 12, 13, 1000])
def test_all_positions_are_given_when_all_or_more_are_wanted(count: int | None) -> None:
    feature_map = torch.randn(2, 5, 3, 4, generator=seeded())
    expected = feature_map.permute(0, 2, 3, 1).reshape(2, 12, 5)
    assert torch.equal(map_positions(feature_map, count, seeded()), expected)


@pytest.mark.parametrize("count", [1, 5, 11])
def test_drawn_positions_are_different_ones_and_the_same_for_the_whole_batch(count: int) -> None:
    places = torch.arange(12.0).view(1, 1, 3, 4)
    found = map_positions(torch.cat([places, places + 100]), count, seeded())
    assert found.shape == (2, count, 1)
    assert found[0].unique().numel() == count
    assert set(found[0].flatten().tolist()) <= set(range(12))
    assert torch.equal(found[1], found[0] + 100)


def test_mean_over_drawn_positions_is_unbiased() -> None:
    feature_map = torch.randn(1, 1, 4, 4, generator=seeded())
    generator = seeded(1)
    draws = torch.stack([map_positions(feature_map, 5, generator).mean() for _ in range(3000)])
    # Four standard errors of the mean of the draws.
    assert abs(draws.mean() - feature_map.mean()) < 4 * draws.std() / 3000**0.5
    assert draws.std() > 0.01


@pytest.mark.parametrize(("channels", "feature_size"), [(64, 10), (8, 256)])
def test_the_split_first_layer_starts_as_one_convolution_on_the_concatenation(channels: int, feature_size: int) -> None:
    torch.manual_seed(0)
    critic = Critic(channels, feature_size)
    bound = 1 / (channels + feature_size) ** 0.5  # PyTorch's start: uniform within one over the root of the fan-in.
    for part in (critic.of_map.weight, critic.of_feature.weight, critic.of_map.bias):
        assert 0.9 * bound < part.abs().max().item() <= bound
