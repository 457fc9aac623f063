import pytest
import torch

from dccm.arrays import ImageShape
from dccm.networks.autoencoder import Network, autoencoder, dense, feature_of
from dccm.networks.base import NetworkConfig, is_encoder
from tests.support import seeded


def test_dense_layers_are_those_of_dec() -> None:
    down, up, size = autoencoder("dense", NetworkConfig(), ImageShape(1, 28, 28), 10)
    shapes = [tuple(p.shape) for network in (down, up) for p in network.parameters() if p.ndim == 2]
    there = [(500, 784), (500, 500), (2000, 500), (10, 2000)]
    assert shapes == there + [(wanted, width) for width, wanted in reversed(there)]
    assert size == 10


@pytest.mark.parametrize("network", ["dense", "conv"])
def test_images_come_back_in_their_shape(network: Network) -> None:
    shape = ImageShape(3, 9, 14)
    encoder, decoder, size = autoencoder(network, NetworkConfig(), shape, 5)
    feature = feature_of(encoder, torch.rand(4, *shape, generator=seeded()))
    assert feature.shape == (4, size)
    assert decoder(feature).shape == (4, *shape)
    assert is_encoder(encoder) == (network == "conv")


def test_dense_layers_start_small_but_do_not_lose_their_input() -> None:
    torch.manual_seed(0)
    deep = dense(*[300] * 9)
    assert 0.03 < deep(torch.randn(50, 300, generator=seeded())).std().item() < 1
    assert all(not layer.bias.any() for layer in deep if isinstance(layer, torch.nn.Linear))
