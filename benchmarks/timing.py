"""Timing on a shared machine: contestants take turns, and a busy machine is noticed."""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"


def seconds_of(work: Callable[[], object]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turns(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, work in contestants.items():
            elapsed = seconds_of(work)
            if number:
                times[name].append(elapsed)
    return {name: statistics.median(values) for name, values in times.items()}


def busy() -> str:
    """A sentence about other work on the machine, or nothing."""
    load = os.getloadavg()[0]
    return f"The machine is busy (load {load:.1f}): ratios will be off." if load > 0.5 else ""


def processor() -> tuple[dict[str, object], str]:
    """What the figures are of, and the vectors by which their file is named."""
    machine = {"processor": torch.cpu.get_capabilities()["cpu_name"], "threads": torch.get_num_threads()}
    return machine, torch.backends.cpu.get_cpu_capability().lower()
