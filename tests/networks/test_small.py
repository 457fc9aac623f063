import pytest
import torch

from dccm.arrays import ImageShape
from dccm.networks.small import FEATURES, small_network
from tests.support import seeded


@pytest.mark.parametrize(
    ("shape", "maps"), [((1, 8, 8), 1), ((1, 28, 28), 2), ((3, 32, 32), 2), ((3, 64, 64), 3), ((3, 96, 70), 3)]
)
def test_convolutions_follow_while_a_map_is_left(shape: tuple[int, int, int], maps: int) -> None:
    network = small_network(ImageShape(*shape))
    assert sum(isinstance(layer, torch.nn.Conv2d) for layer in network) == maps
    assert network(torch.zeros(2, *shape)).shape == (2, FEATURES)


def test_features_know_places() -> None:
    images = torch.zeros(2, 1, 28, 28)
    images[0, 0, :8, :8] = images[1, 0, 20:, 20:] = torch.rand(8, 8, generator=seeded())
    first, second = small_network(ImageShape(1, 28, 28)).eval()(images)
    assert (first - second).norm() > 0.1 * first.norm()
