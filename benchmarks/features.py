"""How fast features are extracted, against the fastest bare forward pass of their encoder; and how soon a run starts.

python -m benchmarks.features                            # part of make bench
python -m benchmarks.features --check                    # part of make bench-check
python -m benchmarks.features --start cifar10.parquet    # a second run, with cached features

All contestants take turns on the same number of images; each figure is the median of several rounds, and only their
ratios mean anything on another machine. The bare passes get images that are scaled already. Extraction is all of
`features_of_images`, with enlarging, scaling, writing, and the trial that foretells its time. Writes
benchmarks/results/features_<vectors>.json, named after the vectors of the processor, and with --start
benchmarks/results/features_start.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.timing import RESULTS, busy, in_turns, processor
from dccm.arrays import Floats
from dccm.data.images import ImageSet, Origin
from dccm.data.synthetic import bars
from dccm.machine import keep_memory, require_compiler
from dccm.networks.efficientnet import PREPROCESSING, EfficientNetLite0
from dccm.networks.efficientnet_onnx import graph_of
from dccm.networks.efficientnet_weights import folded_network, weights_file
from dccm.networks.encoders import LITE0 as NAME
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.onnx_encoder import OnnxSession, scaled
from dccm.networks.pretrained import open_encoder
from dccm.progress import Silent
from dccm.runs.features import features_of_images
from dccm.training.progress import Progress, Stage

BAR = 0.9
"""Extraction must reach this share of the fastest bare pass."""
BAR_SECONDS = 3.0
"""From the start of a process to its first large batch."""
LATEST = "seconds to first large batch"
_PIECE, _BATCH = 4, 16
Work = dict[str, Callable[[], object]]


def by_torch(pixels: Floats, *, compiled: bool) -> Work:
    """Bare passes by torch, as is, with batch norm in the convolutions, and compiled."""
    images = torch.from_numpy(pixels).contiguous(memory_format=torch.channels_last)
    folded = folded_network(weights_file()).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    # Its weights and statistics change no time.
    plain = EfficientNetLite0().eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    networks: dict[str, Callable[[torch.Tensor], object]] = {"torch, channels_last": plain}
    networks["torch, batch norm folded"] = folded
    if compiled:
        require_compiler(torch.device("cpu"))
        networks["torch, compiled"] = torch.compile(folded)

    @torch.inference_mode()
    def passed(network: Callable[[torch.Tensor], object]) -> None:
        for part in images.split(_BATCH):
            network(part)

    return {name: partial(passed, network) for name, network in networks.items()}


def by_onnxruntime(pixels: Floats) -> Work:
    """Bare passes by onnxruntime: all threads in one call, and a thread for each of several calls."""
    import onnxruntime

    content, threads = graph_of(folded_network(weights_file()), PREPROCESSING.side), torch.get_num_threads()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    together = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    alone, pool = OnnxSession(content, NAME), ThreadPoolExecutor(threads)
    return {
        "onnxruntime, threads share a batch": lambda: [
            together.run(None, {"images": part}) for part in _parts(pixels, _BATCH)
        ],
        "onnxruntime, a batch per thread": lambda: list(pool.map(alone, _parts(pixels, _PIECE))),
    }


def _parts(pixels: Floats, size: int) -> list[Floats]:
    return [pixels[start : start + size] for start in range(0, len(pixels), size)]


def extractions(count: int, folder: Path) -> Work:
    """Features of small images, and of photographs that were prepared at the encoder's side, each time anew."""
    encoder = open_encoder(NAME, "cpu")
    return {
        f"extraction, images of {side} pixels": partial(_extracted, _mapped(count, side, folder), encoder, folder)
        for side in (32, PREPROCESSING.side)
    }


def _mapped(count: int, side: int, folder: Path) -> ImageSet:
    np.save(folder / f"{side}.npy", bars(count, side=side, channels=3, classes=10).images)
    images = np.load(folder / f"{side}.npy", mmap_mode="r")
    # Prepared images have their checksum already.
    return ImageSet(images, [str(number) for number in range(count)], stated=Origin(checksum=f"{side}"))


def _extracted(image_set: ImageSet, encoder: FeatureEncoder, folder: Path) -> None:
    with TemporaryDirectory(dir=folder) as cache:
        features_of_images(image_set, encoder, cache=cache)


def measured(count: int, rounds: int, *, compiled: bool) -> dict[str, float]:
    """Images per second of all, and the share of the fastest bare pass that extraction reaches."""
    keep_memory()
    noise = np.random.default_rng(0).integers(0, 256, (count, PREPROCESSING.side, PREPROCESSING.side, 3), np.uint8)
    pixels = scaled(noise, PREPROCESSING, channels_last=False)
    with TemporaryDirectory() as folder:
        bare, whole = by_torch(pixels, compiled=compiled) | by_onnxruntime(pixels), extractions(count, Path(folder))
        seconds = in_turns(bare | whole, rounds)
    fastest = min(seconds[name] for name in bare)
    return {f"images/s {name}": count / value for name, value in seconds.items()} | {
        f"{name} / fastest bare pass": fastest / seconds[name] for name in whole
    }


class _Starting(Silent):
    """Ends the process at its first large batch, and says how long it took to get there."""

    def __init__(self, begun: float) -> None:
        self.begun = begun

    def training(self, progress: Progress | Stage) -> None:
        """The first large batch is done, or something before it."""
        if isinstance(progress, Progress):
            print(time.time() - self.begun, flush=True)
            os._exit(0)


def start(source: str, begun: float, output: str) -> None:
    """Cluster up to the first large batch; what a child process does."""
    from dccm.commands.cluster import cluster

    print(time.time() - begun, flush=True)
    cluster(source, 10, encoder=NAME, output=output, watcher=_Starting(begun))


def starts(source: Path, rounds: int) -> dict[str, float]:
    """Seconds from the start of a process until everything is imported, and until its first large batch is done."""
    call = "import sys; from benchmarks.features import start; start(sys.argv[1], float(sys.argv[2]), sys.argv[3])"
    found = []
    for _ in range(rounds + 1):  # The first one computes what is cached then.
        with TemporaryDirectory() as folder:
            command = [sys.executable, "-c", call, str(source), str(time.time()), f"{folder}/run"]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found.append([float(line) for line in output.split()])
        print("imported {:.2f} s, first large batch {:.2f} s".format(*found[-1]), file=sys.stderr, flush=True)
    imported, begun = (statistics.median(values) for values in zip(*found[1:]))
    return {"seconds to imports": imported, LATEST: begun, "seconds between": begun - imported}


def missed(rows: dict[str, float]) -> list[str]:
    """The bars that were not reached."""
    low = {name: value for name, value in rows.items() if name.endswith("fastest bare pass") and value < BAR}
    late = {name: value for name, value in rows.items() if name == LATEST and value > BAR_SECONDS}
    return [f"{name}: {value:.3f}, must be at least {BAR}" for name, value in low.items()] + [
        f"{name}: {value:.2f}, must be at most {BAR_SECONDS}" for name, value in late.items()
    ]


def main() -> None:
    """Measure, print; write it down, or hold it against the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--start", type=Path, metavar="SOURCE", help="time a second run on these images instead")
    parser.add_argument("--compiled", action="store_true", help="also let torch compile the network, for minutes")
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    parser.add_argument("--check", action="store_true", help="hold it against the bars instead of writing it")
    arguments = parser.parse_args()
    if busy() and not arguments.force:
        sys.exit(busy() + " Wait until it is idle, or give --force.")
    machine, vectors = processor()
    if arguments.start:
        rows = starts(arguments.start, arguments.rounds)
    else:
        rows = measured(arguments.images, arguments.rounds, compiled=arguments.compiled)
    for name, value in rows.items():
        print(f"{name:64s} {value:10.3f}")
    if not arguments.check:
        name = "features_start" if arguments.start else f"features_{vectors}"
        (RESULTS / f"{name}.json").write_text(json.dumps(machine | rows, indent=1) + "\n")
    sys.exit("Bars that were missed:\n" + "\n".join(missed(rows)) if missed(rows) else 0)


if __name__ == "__main__":
    main()
