"""Training on CIFAR-10 from the memory map against the same training from a tensor in memory, taking turns.

python -m benchmarks.feeding cifar10.parquet

The contestants train the same encoder in the same batches (of 1,000, in mini-batches of 128); one gets its images from
`Loader` on the prepared, mapped file, the other indexes one float tensor that holds all images already.
Writes benchmarks/results/feeding.json.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.data.loader import Loader
from dccm.data.read import read_images
from dccm.machine import keep_memory
from dccm.networks.base import NetworkConfig
from dccm.networks.paper import PaperEncoder

RESULT = Path(__file__).parent / "results" / "feeding.json"
BATCH, MINI = 1000, 128
CPU = torch.device("cpu")


def from_map(images: np.ndarray, epoch: int) -> Iterator[Tensor]:
    """Shuffled batches by the package."""
    return (batch.images for batch in Loader(images, batch_size=BATCH, seed=0, device=CPU).shuffled(epoch))


def from_tensor(images: Tensor, epoch: int) -> Iterator[Tensor]:
    """Shuffled batches of a tensor that is there already."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    return (images[index] for index in order.tensor_split(len(images) // BATCH))


def train(batches: Iterator[Tensor], count: int) -> float:
    """Images per second of so many large batches."""
    torch.manual_seed(0)
    encoder = PaperEncoder(NetworkConfig(logit_norm="batch"), ImageShape(3, 32, 32), 10).to(
        memory_format=torch.channels_last
    )  # type: ignore[call-overload]
    optimizer = torch.optim.RMSprop(encoder.parameters(), lr=1e-3)
    done, started = 0, time.perf_counter()
    for _, images in zip(range(count), batches):
        for mini in images.tensor_split(round(len(images) / MINI)):
            optimizer.zero_grad(set_to_none=True)
            prediction = encoder(mini).prediction
            F.nll_loss(prediction.clamp_min(1e-9).log(), prediction.argmax(dim=1).detach()).backward()
            optimizer.step()
            done += len(mini)
    return done / (time.perf_counter() - started)


def main() -> None:
    """Let both take turns, and write the ratio of their medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, default=4)
    arguments = parser.parse_args()
    keep_memory()
    mapped = read_images(arguments.source, image_size=32).images
    assert isinstance(mapped, np.memmap)
    tensor = torch.from_numpy(np.array(mapped)).permute(0, 3, 1, 2).float().div_(255)
    contestants: dict[str, Callable[[int], Iterator[Tensor]]] = {
        "memory map": lambda epoch: from_map(mapped, epoch),
        "tensor": lambda epoch: from_tensor(tensor, epoch),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(arguments.rounds + 1):
        for name, batches in contestants.items():
            rate = train(batches(number), arguments.batches)
            if number:  # The first round warms up.
                rates[name].append(rate)
        print(number, {name: round(values[-1]) for name, values in rates.items() if values}, flush=True)
    middle = {name: median(values) for name, values in rates.items()}
    result = {"images per second": middle, "ratio": middle["memory map"] / middle["tensor"]}
    print(json.dumps(result, indent=1))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
