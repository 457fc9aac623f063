"""Training steps that are timed against each other, and the arithmetic in them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dccm.arrays import ImageShape
from dccm.data.loader import Batch
from dccm.networks.base import NetworkConfig
from dccm.networks.critic import HIDDEN
from dccm.networks.paper import PaperEncoder
from dccm.runs.config import RunConfig, make_config
from dccm.runs.model import Model
from dccm.training.update import computed_in

SHAPE = ImageShape(3, 32, 32)
LARGE = 512
"""Images in the large batch that each contestant learns from, once a round."""
PAIRS = 4
"""Pairs of an image in the published step: its own, one positive, two negative."""
MATRIX = 2048
CPU = torch.device("cpu")


ALL_PIXELS: dict[str, object] = {"input_side": "full", "width": 1.0}
SMALL_IMAGES: dict[str, object] = {"input_side": 20, "width": 1.0}
"""What the tables know `fast` by: all channels, at 32 pixels and at 20. As it is, it costs what it does at 20."""


def settings_of(preset: str, overrides: dict[str, object]) -> RunConfig:
    """A preset for the images of all contestants."""
    return make_config("dccm", preset, "cifar10", overrides)


def package_step(config: RunConfig) -> Callable[[Tensor], None]:
    """All updates of a large batch by the package: mining, perturbation, critic, optimizer."""
    method = Model.untrained(SHAPE, config).learner
    method.train()

    def step(images: Tensor) -> None:
        batch = Batch(images, torch.arange(len(images)), torch.Generator().manual_seed(0))
        for update in computed_in(config.training.precision, iter(method.updates(batch)), CPU):
            update.optimizer.zero_grad(set_to_none=True)
            update.loss.backward()
            update.optimizer.step()

    return step


def encoder_step(mini: int) -> Callable[[Tensor], None]:
    """Forward, backward and optimizer of the encoder alone."""
    encoder = PaperEncoder(NetworkConfig(logit_norm="batch"), SHAPE, 10).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.RMSprop(encoder.parameters(), lr=1e-4)
    encoder.train()

    def step(images: Tensor) -> None:
        for part in images.split(mini):
            optimizer.zero_grad(set_to_none=True)
            prediction = encoder(part).prediction
            F.nll_loss(prediction.clamp_min(1e-9).log(), prediction.detach().argmax(dim=1)).backward()
            optimizer.step()

    return step


@contextmanager
def published_step() -> Iterator[Callable[[Tensor], None]]:
    """The published step in a process of its own, on as many images."""
    command = [sys.executable, "-m", "benchmarks.published_step", str(LARGE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        coming, going = process.stdout, process.stdin

        def step(_: Tensor) -> None:
            print("step", file=going, flush=True)
            if not coming.readline():
                sys.exit(
                    "The published step ended before its time; echo | python -m benchmarks.published_step 64 shows why."
                )

        yield step
        going.close()


def matrix_product() -> Callable[[Tensor], None]:
    """The product of two square matrices."""
    left, right = torch.rand(MATRIX, MATRIX), torch.rand(MATRIX, MATRIX)

    def multiply(_: Tensor) -> None:
        torch.mm(left, right)

    return multiply


def forward_operations() -> float:
    """Multiplications and additions of the encoder's linear layers and convolutions, for one image."""
    encoder = PaperEncoder(NetworkConfig(logit_norm="batch"), SHAPE, 10).eval()
    total = 0.0

    def count(module: nn.Module, _: Any, output: Tensor) -> None:
        nonlocal total
        total += 2 * module.weight[0].numel() * output.numel()  # type: ignore[index]

    for module in encoder.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(count)
    with torch.no_grad():
        encoder(torch.rand(1, *SHAPE))
    return total


def critic_operations(*, shared: bool) -> float:
    """Multiplications and additions of the critic for one image, forward and back, with four pairs at all positions.

    Args:
        shared: Whether the first layer is computed once an image, in a part of the map and a part of the feature.
    """
    encoder = PaperEncoder(NetworkConfig(), SHAPE, 10).eval()
    with torch.no_grad():
        shallow: Tensor = encoder(torch.rand(1, *SHAPE)).feature_map
    channels, positions, logits = shallow.shape[1], shallow[0, 0].numel(), 10
    first = positions * channels + logits if shared else PAIRS * positions * (channels + logits)
    later = PAIRS * positions * (HIDDEN + 1)
    return 3 * 2.0 * HIDDEN * (first + later)
