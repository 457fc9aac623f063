"""A pretrained network in two parts: what stays as it is, and the last blocks, which learn."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from dccm.arrays import ImageShape
from dccm.errors import UserError
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig, is_encoder
from dccm.networks.efficientnet_weights import efficientnet_from
from dccm.networks.map_encoder import MapEncoder, open_map_encoder, require_finetune
from dccm.networks.tail import Tail, TailHead, map_shape
from dccm.runs.features import unit_vectors
from tests.networks.weights import random_network, write_weights
from tests.support import seeded

CPU = torch.device("cpu")
PHOTOS = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), dtype=np.uint8)


def cut(blocks: int) -> MapEncoder:
    return MapEncoder("cut", random_network().folded(), blocks, CPU)


def maps(count: int, blocks: int = 1) -> torch.Tensor:
    return torch.randn(count, *map_shape(blocks), generator=seeded())


@pytest.mark.parametrize("blocks", [1, 2, 5, 16])
def test_maps_are_of_the_shape_that_is_said(blocks: int) -> None:
    height, width, channels = cut(blocks).map_shape
    assert cut(blocks)(PHOTOS[:1]).shape == (1, height, width, channels)
    assert map_shape(blocks) == ImageShape(channels, height, width)
    assert map_shape(1) == ImageShape(192, 7, 7)


@pytest.mark.parametrize("blocks", [1, 4])
def test_both_parts_together_are_the_frozen_encoder(blocks: int, tmp_path: Path) -> None:
    path = write_weights(tmp_path / "own.safetensors")
    whole, parts = efficientnet_from(path, f"file:{path}", CPU), open_map_encoder(f"file:{path}", blocks, "cpu")
    head = TailHead(blocks, map_shape(blocks), 3)
    parts.begin(head)
    found = torch.from_numpy(parts(PHOTOS).astype(np.float16)).permute(0, 3, 1, 2).float()
    with torch.inference_mode():
        vectors = head.vectors(head.conv(found)).numpy()
    assert np.allclose(vectors, unit_vectors(whole(PHOTOS)).astype(np.float32), atol=2e-3)
    assert parts.identity == whole.identity


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_gradient_reaches_the_last_blocks_and_nothing_before_them(blocks: int) -> None:
    network = random_network().folded()
    before = [weight for block in list(network.blocks)[: 16 - blocks] for weight in block.parameters()]
    behind = [weight for block in list(network.blocks)[16 - blocks :] for weight in block.parameters()]
    encoder, head = MapEncoder("cut", network, blocks, CPU), TailHead(blocks, map_shape(blocks), 3)
    head.tail = encoder.tail
    made = torch.from_numpy(encoder(PHOTOS)).permute(0, 3, 1, 2).requires_grad_()
    head(made).prediction.square().sum().backward()
    learning = [*behind, *network.head.parameters(), *head.output.parameters(), *head.norm.parameters()]
    assert {id(weight) for weight in head.parameters()} == {id(weight) for weight in learning}
    assert all(weight.grad is not None and weight.grad.any() for weight in behind)
    assert all(weight.grad is None for weight in [*before, *network.stem.parameters()])


def test_batch_norm_keeps_the_statistics_of_the_pretraining() -> None:
    tail, batch = Tail(random_network().folded(), 2), maps(3, 2)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in tail.modules())
    with torch.no_grad():
        alone, together = tail.train()(batch[:1]), tail(batch)
        assert torch.allclose(alone[0], together[0], atol=1e-4)
        assert torch.allclose(tail.eval()(batch), together, atol=1e-4)


def test_it_keeps_the_contract_of_an_encoder_and_the_map_at_the_cut_is_the_shallow_one() -> None:
    head = build_encoder(NetworkConfig(), map_shape(1), 3, finetune=1).eval()
    assert isinstance(head, TailHead)
    assert is_encoder(head)
    batch = maps(4)
    output = head(batch)
    assert torch.equal(output.feature_map, batch)
    assert output.conv.shape == (4, 1280, 7, 7)
    assert torch.allclose(output.feature, head.feature(head.conv(head.feature_map(batch))))
    assert (output.feature.shape, output.prediction.shape) == ((4, 64), (4, 3))
    assert head.map_channels == 192
    assert head.description == "the last block trained and one linear layer on 64 components"


def test_images_in_the_place_of_maps_are_refused() -> None:
    with pytest.raises(UserError, match="finetune = 2 learns from maps of 7 x 7 x 192 .*, got 32 x 32 x 3. Name the"):
        build_encoder(NetworkConfig(), ImageShape(3, 32, 32), 3, finetune=2)


@pytest.mark.parametrize(
    ("encoder", "blocks", "words"),
    [
        ("efficientnet-lite0", 17, r"finetune must lie in \[0, 16\], as efficientnet-lite0 has 16 blocks, got 17"),
        ("file:own.safetensors", 99, r"efficientnet-lite0 has 16 blocks, got 99"),
        ("onnx:a.onnx", 1, "finetune must be 0 with the encoder 'onnx:a.onnx', got 1: an ONNX file can be run and not"),
        ("timm:vit", 1, "where the blocks of a model of timm begin is not known. Set finetune = 0, or take"),
        ("hf:vit", 2, "where the blocks of a model of Hugging Face begin is not known"),
        ("scratch", 1, "'scratch' learns all of its network anyway"),
    ],
)
def test_blocks_that_are_not_known_or_not_there_are_refused(encoder: str, blocks: int, words: str) -> None:
    require_finetune(encoder, 0)
    with pytest.raises(UserError, match=words):
        require_finetune(encoder, blocks)
