"""How fast a training step is, against the published step and against what the machine can do.

python -m benchmarks.speed            # or: make bench
python -m benchmarks.speed --check    # or: make bench-check

All contestants take turns on the same images; each figure is the median of several rounds, and only their ratios mean
anything on another machine. The published step has a process of its own, because the package tunes the allocator of
its own. Writes a table and a plot to benchmarks/results/, named after the vectors of the processor, such as
speed_avx2.json and speed_avx2.svg; the check asks the table of that name.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from benchmarks.contestants import (
    ALL_PIXELS,
    CPU,
    LARGE,
    MATRIX,
    SHAPE,
    SMALL_IMAGES,
    critic_operations,
    encoder_step,
    forward_operations,
    matrix_product,
    package_step,
    published_step,
    settings_of,
)
from benchmarks.published_step import images_of
from benchmarks.timing import RESULTS, busy, in_turns, processor
from dccm.data.loader import Loader
from dccm.data.synthetic import bars
from dccm.machine import has_bfloat16, keep_memory
from dccm.networks.base import NetworkConfig
from dccm.networks.paper import PaperEncoder
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.runs.model import Model

ALLOWED_LOSS = 0.15
COLOURS = {
    "published": "#9aa5b1",
    "same arithmetic": "#5b8def",
    "same arithmetic, bfloat16": "#8fb1f5",
    "fast": "#1f5fd6",
    "fast, small images": "#133f92",
    "fast, small images, bfloat16": "#3a4f86",
    "bare encoder": "#c9d1d9",
}
"""Training steps of the plot, in its order."""


def training(rounds: int, mini: int) -> dict[str, float]:
    """Images per second of the training steps, and how they relate."""
    images = images_of(LARGE)
    product = matrix_product()
    same: dict[str, object] = {"uses": 1, "critic_positions": "all", "mini_batch": 32}
    contestants = {
        "same arithmetic": settings_of("released", same),
        "fast": settings_of("fast", {"mini_batch": mini} | ALL_PIXELS),
        "fast, small images": settings_of("fast", {"mini_batch": mini} | SMALL_IMAGES),
    }
    if has_bfloat16(CPU):
        lower: dict[str, object] = {"precision": "bfloat16"}
        contestants["same arithmetic, bfloat16"] = settings_of("released", same | lower)
        contestants["fast, small images, bfloat16"] = settings_of("fast", {"mini_batch": mini} | SMALL_IMAGES | lower)
    with published_step() as published:
        steps: dict[str, Callable[[Tensor], None]] = {
            "published": published,
            **{name: package_step(config) for name, config in contestants.items()},
            "bare encoder": encoder_step(mini),
        }
        work: dict[str, Callable[[], object]] = {name: _bound(step, images) for name, step in steps.items()}
        seconds = in_turns(work | {"matrix product": lambda: [product(images) for _ in range(8)]}, rounds)
    peak = 8 * 2 * MATRIX**3 / seconds.pop("matrix product")
    rates = {name: LARGE / value for name, value in seconds.items()}
    for name, config in contestants.items():
        rates[name] *= int(str(config.settings()["uses"]))  # Images learnt from count each time.
    bare = 3 * forward_operations()
    work_of = {name: bare + critic_operations(shared=name != "published") for name in ("published", "same arithmetic")}
    return {f"images/s {name}": rate for name, rate in rates.items()} | {
        **{f"{name} / published": rates[name] / rates["published"] for name in contestants},
        "fast / bare encoder": rates["fast"] / rates["bare encoder"],
        "bare encoder / matrix product": rates["bare encoder"] * bare / peak,
        # Of both the share of the peak without what no product of matrices does: mining, perturbation, partners.
        **{f"{name} / matrix product": rates[name] * operations / peak for name, operations in work_of.items()},
        "same arithmetic / published, at the peak": peak / work_of["same arithmetic"] / rates["published"],
    }


def prediction(rounds: int, folder: Path) -> dict[str, float]:
    """Images per second of `predict_proba` from a memory map, against the encoder's bare forward pass."""
    np.save(folder / "images.npy", bars(4000, side=32, channels=3, classes=10).images)
    mapped = np.load(folder / "images.npy", mmap_mode="r")
    model = Model.untrained(SHAPE, settings_of("fast", ALL_PIXELS))
    encoder = PaperEncoder(NetworkConfig(logit_norm="batch"), SHAPE, 10).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    tensor = torch.cat(list(Loader(mapped, batch_size=1000, seed=0, device=CPU).ordered()))
    encoder.eval()

    @torch.inference_mode()
    def bare() -> None:
        for part in tensor.split(256):
            encoder(part)

    seconds = in_turns({"predict": lambda: model.predict_proba(mapped), "bare forward": bare}, rounds)
    rates = {f"images/s {name}": len(mapped) / value for name, value in seconds.items()}
    return rates | {"predict / bare forward": seconds["bare forward"] / seconds["predict"]}


def start_up(rounds: int) -> dict[str, float]:
    """How long `import dccm` and `dccm --help` take, against `import torch`."""

    def python(*words: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True)

    seconds = in_turns(
        {
            "import torch": python("-c", "import torch"),
            "import dccm": python("-c", "import torch, dccm"),
            "dccm --help": python("-m", "dccm", "--help"),
        },
        rounds,
    )
    return {
        "import dccm / import torch": seconds["import dccm"] / seconds["import torch"],
        "dccm --help / import torch": seconds["dccm --help"] / seconds["import torch"],
    }


def memory(mini: int) -> dict[str, float]:
    """Largest memory of fresh processes that train with the fast settings, in MB beyond the bytes of their images."""
    program = f"""
import resource, sys
from dccm.data.synthetic import bars
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
thousands = int(sys.argv[1])
images = bars(1000, side=32, channels=3).images.repeat(thousands, axis=0)
fit(images, make_config("dccm", "fast", "cifar10", {{"budget_passes": 2 / thousands, "mini_batch": {mini}}}))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - images.nbytes / 2**20)
"""
    found = {}
    for thousands in (2, 20):
        command = [sys.executable, "-c", program, str(thousands)]
        words = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[f"MB beyond the data, {thousands},000 images"] = float(words)
    return found


def growth(mini: int) -> dict[str, float]:
    """Seconds an image of one epoch, with many images against few, in turns; 1 is linear."""
    config = make_config("dccm", "fast", "cifar10", {"n_clusters": 10, "epochs": 1, "uses": 1, "mini_batch": mini})
    some = bars(1000, side=32, channels=3, classes=10).images
    few, many = (some.repeat(thousands, axis=0) for thousands in (10, 60))
    seconds = in_turns({"few": lambda: fit(few, config), "many": lambda: fit(many, config)}, rounds=2)
    return {"cost an image, 60,000 / 10,000 images": seconds["many"] / seconds["few"] * len(few) / len(many)}


def compared(found: dict[str, float], committed: dict[str, float]) -> list[str]:
    """Ratios that have become worse by more than is allowed."""
    worse = []
    for name, before in committed.items():
        if " / " in name and name in found:
            smaller_is_better = name.startswith("cost") or "import" in name
            change = before / found[name] if smaller_is_better else found[name] / before
            if change < 1 - ALLOWED_LOSS:
                worse.append(f"{name}: {before:.3f} before, {found[name]:.3f} now")
    return worse


def plot(found: dict[str, float], path: Path) -> None:
    """Images per second of each training step, as bars."""
    from matplotlib import pyplot

    rates = {name: found[f"images/s {name}"] for name in COLOURS if f"images/s {name}" in found}
    figure, axes = pyplot.subplots(figsize=(7, 0.8 + 0.4 * len(rates)), layout="constrained")
    bars_drawn = axes.barh(list(rates), list(rates.values()), color=[COLOURS[name] for name in rates])
    axes.bar_label(bars_drawn, [f"{rate / rates['published']:.1f}x" for rate in rates.values()], padding=4)
    axes.invert_yaxis()
    axes.set_xlabel("images per second and gradient pass, CIFAR-10 network, two cores")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.1)
    figure.savefig(path)


def _bound(step: Callable[[Tensor], None], images: Tensor) -> Callable[[], object]:
    return lambda: step(images)


def main() -> None:
    """Measure everything; write it down, or compare it with what was written down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mini", type=int, default=64, help="images in a mini-batch of fast and the bare encoder")
    parser.add_argument("--growth", action="store_true", help="time whole epochs of 10,000 and 60,000 images too")
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    parser.add_argument("--check", action="store_true", help="compare with the committed table instead of writing it")
    arguments = parser.parse_args()
    machine, vectors = processor()
    table = RESULTS / f"speed_{vectors}.json"
    if arguments.check and not table.is_file():
        sys.exit(f"There is no {table.name} to compare with: make bench writes it.")
    if busy() and not arguments.force:
        sys.exit(busy() + " Wait until it is idle, or give --force.")
    keep_memory()
    torch.manual_seed(0)
    found = training(arguments.rounds, arguments.mini)
    with TemporaryDirectory() as folder:
        found |= prediction(arguments.rounds, Path(folder))
    found |= start_up(arguments.rounds) | memory(arguments.mini)
    if arguments.growth:
        found |= growth(arguments.mini)
    for name, value in found.items():
        print(f"{name:36s} {value:10.3f}")
    if arguments.check:
        committed = json.loads(table.read_text())
        before = {name: committed.pop(name) for name in machine}
        if before != machine:
            print(
                f"The committed table is of another machine, {before}; this is {machine}: ratios may differ for that."
            )
        worse = compared(found, committed)
        sys.exit("Slower than the committed table:\n" + "\n".join(worse) if worse else 0)
    table.write_text(json.dumps(machine | found, indent=1) + "\n")
    plot(found, table.with_suffix(".svg"))


if __name__ == "__main__":
    main()
