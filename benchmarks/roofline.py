"""What a step of `fast` on CIFAR-10 costs part by part, and what its arithmetic must cost at least.

python -m benchmarks.roofline

One thread, processor time, the least of several rounds of each part: waiting for other work does not count. Parts are
those of one mini-batch of 64; what is done once a large batch is shared out. Writes
benchmarks/results/roofline_VECTORS.json.
"""

import json
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
import torch.nn.functional as F

from benchmarks.contestants import SHAPE, SMALL_IMAGES, package_step, settings_of
from benchmarks.timing import RESULTS, processor
from dccm.correlations.objective import objective
from dccm.correlations.targets import mine
from dccm.data.loader import Batch
from dccm.machine import keep_memory
from dccm.methods.base import predictions_of
from dccm.methods.dccm import DCCMMethod
from dccm.networks import product
from dccm.networks.critic import HIDDEN
from dccm.runs.model import Model

LARGE, MINI, USES = 1024, 64, 4
"""Images in a large batch, in a mini-batch, and uses of the large batch."""
STEPS = LARGE // MINI
LINKED: dict[str, object] = {"graph_threshold": 0.5} | SMALL_IMAGES
"""Every image has a partner, as late in a run; without one the critic has a quarter less to do."""
Parts = dict[str, Callable[[], object]]


def least(parts: Parts, rounds: int) -> dict[str, float]:
    """Milliseconds of the processor that each needs, the least of several rounds in turns."""
    found = dict.fromkeys(parts, float("inf"))
    for _ in range(rounds):
        for name, part in parts.items():
            started = time.thread_time()
            part()
            found[name] = min(found[name], 1000 * (time.thread_time() - started))
    return found


def peaks(rounds: int) -> dict[str, float]:
    """Billions of operations a second of the two kinds of product that the step is made of."""
    rows, weight = torch.rand(LARGE, HIDDEN), torch.rand(HIDDEN, HIDDEN)
    maps, kernels = torch.rand(MINI, 64, 18, 18), torch.rand(64, 64, 3, 3)
    maps = maps.contiguous(memory_format=torch.channels_last)
    work: Parts = {
        "torch.mm": lambda: rows @ weight.T,
        "product": lambda: product.product(rows, weight),
        "convolution": lambda: F.conv2d(maps, kernels),
    }
    products = 2 * LARGE * HIDDEN**2
    operations = {"torch.mm": products, "product": products, "convolution": 2 * MINI * 16 * 16 * 64 * 64 * 9}
    return {f"GF/s {name}": operations[name] / ms / 1e6 for name, ms in least(work, rounds).items()}


def parts_of_a_step(rounds: int) -> dict[str, float]:
    """Milliseconds of each part, for one mini-batch."""
    method = Model.untrained(SHAPE, settings_of("fast", LINKED)).learner
    assert isinstance(method, DCCMMethod)
    method.train()
    images = torch.rand(LARGE, *SHAPE).contiguous(memory_format=torch.channels_last)
    batch = Batch(images, torch.arange(LARGE), torch.Generator().manual_seed(0))
    prediction = predictions_of(method.encoder, images)
    targets = mine(prediction, graph_threshold=0.5, label_threshold=0.9)
    index = torch.randperm(LARGE)[:MINI]
    views, rows = {"perturbed": method._perturbed(batch)(index)}, targets.rows(index)
    outputs = method._encoded(views)
    optimizer = method.optimizers["all"]
    found = least(
        {
            "mining": lambda: predictions_of(method.encoder, images),
            "perturbation": lambda: method._perturbed(batch)(index),
            "encoder, forward": lambda: method._encoded(views),
            "critic, forward and back": lambda: method._information(outputs["perturbed"], rows, batch.generator),
        },
        rounds,
    )
    found["mining"] /= STEPS * USES
    found["backward, without the critic's pairs"] = found["optimizer"] = float("inf")
    for _ in range(rounds):
        terms = method._terms(views, rows, batch.generator)
        loss = objective(terms, label_weight=5.0, information_weight=0.05)
        optimizer.zero_grad(set_to_none=True)
        again = least({"backward, without the critic's pairs": loss.backward}, 1) | least(
            {"optimizer": optimizer.step}, 1
        )
        found |= {name: min(found[name], ms) for name, ms in again.items()}
    return found


def whole_step(rounds: int) -> dict[str, float]:
    """Milliseconds of a mini-batch with everything, and the same with all products left to torch.mm."""
    step = package_step(settings_of("fast", LINKED))
    images = torch.rand(LARGE, *SHAPE).contiguous(memory_format=torch.channels_last)

    def by_mm() -> None:
        with patch.object(product, "convolves_faster", return_value=False):
            step(images)

    found = least({"whole": lambda: step(images), "whole, by torch.mm": by_mm}, rounds)
    return {name: ms / STEPS / USES for name, ms in found.items()}


def operations_of_a_step() -> dict[str, float]:
    """Billions of multiplications and additions of a mini-batch at 20 pixels."""
    layers = (18 * 18 * 27 * 64, 16 * 16 * 576 * 64, 6 * 6 * 576 * 128, 1152 * 256)
    forward, first = 2 * MINI * sum(layers) / 1e9, 2 * MINI * layers[0] / 1e9
    return {
        "mining": forward / USES,
        "encoder": 3 * forward - first,  # Images need no gradient.
        "critic": 3 * 2 * 4 * 4 * MINI * HIDDEN**2 / 1e9,  # Four pairs at four positions, forward and twice back.
    }


def main() -> None:
    """Measure, print and write down."""
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    machine, vectors = processor()
    operations = operations_of_a_step()
    found = peaks(20) | {f"ms {name}": ms for name, ms in (parts_of_a_step(12) | whole_step(3)).items()}
    found |= {f"GF {name}": value for name, value in operations.items()}
    found["ms at least"] = 1000 * sum(operations.values()) / found["GF/s convolution"]
    found["share of the peak"] = found["ms at least"] / found["ms whole"]
    found["by torch.mm / whole"] = found["ms whole, by torch.mm"] / found["ms whole"]
    for name, value in found.items():
        print(f"{name:45s}{value:10.3f}")
    (RESULTS / f"roofline_{vectors}.json").write_text(json.dumps(machine | found, indent=1) + "\n")


if __name__ == "__main__":
    main()
