"""Whether several processes learn as fast as one of as many threads, how much they talk, and what is the same.

    python -m benchmarks.processes speed cifar10.parquet [--batches 2 --rounds 5]
    python -m benchmarks.processes order

- `speed`: images/s of preset `fast` in two processes of one thread each, over those of one process of two threads; in
  turns, so that other work on the computer meets both. With it, the share of a step that passes in waiting for others
  and sending. Needs a quiet machine of two cores. Writes benchmarks/results/processes.json.
- `order`: how far a short run differs from itself with two workers, which add in another order, and with another last
  digit of its first weights.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from copy import deepcopy
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tests.training.thread_team import together
from torch import Tensor

from benchmarks.timing import RESULTS, busy
from dccm.arrays import Bytes, ImageShape
from dccm.data.datasets import load_digits
from dccm.data.loader import Batch, Loader
from dccm.data.read import read_images
from dccm.launched import launched
from dccm.methods.base import GradientMethod
from dccm.methods.dividing import divided
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from dccm.training.progress import Record
from dccm.training.team import joined
from dccm.training.workers import ALONE, Workers

_IMAGES = 4000
"""Of CIFAR-10 that a measurement learns from: four large batches."""


def pace(source: str, batches: int) -> dict[str, float]:
    """Images/s of this process and those that torchrun started with it, and the share of talk."""
    images = read_images(source, up_to=_IMAGES).images
    config = make_config("dccm", "fast", "cifar10", {"n_clusters": 10})
    model = Model.untrained(ImageShape(3, 32, 32), config)
    with joined() as workers:
        talk = _timed(workers)
        with workers.training(), divided(model.learner, workers):
            model.learner.train()
            every = model.loader(images).shuffled(0)
            _learn(model.learner, next(every), workers)
            talk[0], learnt, started = 0.0, 0, time.perf_counter()
            for _ in range(batches):
                learnt += _learn(model.learner, next(every), workers)
            seconds = time.perf_counter() - started
    return {"images/s": learnt / seconds, "talk": talk[0] / seconds}


def _learn(learner: GradientMethod[Any], batch: Batch, workers: Workers) -> int:
    """Images of all steps of a large batch, mining and all uses of it."""
    images = 0
    for update in learner.updates(batch):
        update.step(workers)
        images += update.images
    return images


def _timed(workers: Workers) -> list[float]:
    """Seconds that the team talks, added up from here on."""
    total = [0.0]
    team = getattr(workers, "team", None)
    for name in ("gather", "add_up", "send") if team else ():
        usual = getattr(team, name)

        def timed(tensor: Tensor, usual: Any = usual) -> Any:
            began = time.perf_counter()
            found = usual(tensor)
            total[0] += time.perf_counter() - began
            return found

        setattr(team, name, timed)
    return total


def speed(source: str, count: int, rounds: int) -> None:
    """Both in turns; the median of the ratios."""
    measured: dict[str, list[dict[str, float]]] = {"together": [], "alone": []}
    for _ in range(rounds):
        measured["together"].append(_measured(source, count, processes=2))
        measured["alone"].append(_measured(source, count, processes=1))
    pairs = zip(measured["together"], measured["alone"], strict=True)
    figures = {
        "two processes / two threads": median(one["images/s"] / other["images/s"] for one, other in pairs),
        "images/s of two processes": median(one["images/s"] for one in measured["together"]),
        "images/s of two threads": median(one["images/s"] for one in measured["alone"]),
        "share of a step that is talk": median(one["talk"] for one in measured["together"]),
        "large batches": count,
        "rounds": rounds,
        "busy": busy(),
    }
    print(json.dumps(figures, indent=1))
    (RESULTS / "processes.json").write_text(json.dumps(figures, indent=1) + "\n")


def _measured(source: str, count: int, processes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.processes", "pace", source, "--batches", str(count)]
    if processes > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m"]
        command[1:2] = launcher
    threads = {"OMP_NUM_THREADS": str(2 // processes)}
    done = subprocess.run(command, env=os.environ | threads, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def order() -> None:
    """Three epochs of 500 digits: one worker, two, and one whose first weights have another last digit."""
    for kind, preset, more in (
        (torch.float64, "fast", {}),
        (torch.float32, "fast", {}),
        (torch.float32, "paper", {"width": 0.25}),
    ):
        torch.set_default_dtype(kind)
        config = make_config("dccm", preset, "digits", {"n_clusters": 10, "epochs": 3, "starts": 1, **more})
        model = Model.untrained(ImageShape(1, 8, 8), config)
        images = load_digits().images[:500]

        def trained(
            workers: Workers, learner: GradientMethod[Any], model: Model = model, images: Bytes = images
        ) -> _Trained:
            loader = _Exact(images, batch_size=model.config.training.batch_size, seed=0, device=torch.device("cpu"))
            with divided(learner, workers):
                history = train(learner, loader, model.config.training)
                kept = learner.finish(loader)
            kept.eval()
            with torch.no_grad():
                return history, loader.over_all(kept.predict).argmax(axis=1)

        begun = [deepcopy(model.learner) for _ in range(4)]
        with torch.no_grad():
            for weight in begun[3].parameters():
                weight.mul_(1 + torch.finfo(kind).eps)
        alone = trained(ALONE, begun[0])
        both = together(2, lambda workers: trained(workers, begun[1 + workers.place.rank]))[0]  # noqa: B023
        for what, other in (("two workers", both), ("another last digit", trained(ALONE, begun[3]))):
            print(f"{kind}  {preset}  {what}: {_apart(other, alone)}")


_Trained = tuple[list[Record], npt.NDArray[np.int64]]


class _Exact(Loader):
    """Hands out images in the precision that is asked for."""

    def _travelled(self, images: Any, index: Any) -> Tensor:
        return super()._travelled(images, index).to(torch.get_default_dtype())


def _apart(one: _Trained, other: _Trained) -> str:
    """Largest relative difference of each epoch's figures, and the share of images with the same label."""
    names = ("loss", "graph", "label", "information", "confident_share", "linked_share")
    most = [
        max(abs(mine[name] - yours[name]) / max(abs(yours[name]), 1e-3) for name in names)
        for mine, yours in zip(one[0], other[0], strict=True)
    ]
    return ", ".join(f"{value:.1e}" for value in most) + f"; {(one[1] == other[1]).mean():.1%} of the labels"


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "order", "pace"])
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.what == "speed":
        speed(given.source, given.batches, given.rounds)
    elif given.what == "pace":
        found = pace(given.source, given.batches)
        told = launched()
        if told is None or told.rank == 0:
            print(json.dumps(found))
    else:
        order()


if __name__ == "__main__":
    main()
