"""k-means, spectral and agglomerative clustering: time, memory and scores against scikit-learn's own, taking turns.

python -m benchmarks.classical cifar10.parquet --counts 10000 60000 --memory 8

Both get the same images and scaling, and k-means the same number of starts. Each run has a process of its own, whose
peak memory it reports. scikit-learn sits out where its matrix of all pairs would not fit, and is stopped after
`--limit` minutes. Adds to benchmarks/results/classical.json; a comparison that is there already is replaced.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.datasets import read
from dccm.evaluation.metrics import scores
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.runs.run import peak_memory

RESULT = Path(__file__).parent / "results" / "classical.json"
METHODS = ("kmeans", "spectral", "agglomerative")
NEIGHBOURS = 20


class Outcome(NamedTuple):
    """What one run gave."""

    labels: np.ndarray
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


def by_dccm(method: str, images: np.ndarray, clusters: int, seed: int) -> np.ndarray:
    """Labels of ours, in the scaling of both."""
    settings = {"n_clusters": clusters, "seed": seed, "scaling": "unit", "device": "cpu"}
    probabilities = fit(images, make_config(method, overrides=settings)).model.predict_proba(images)
    return np.asarray(probabilities.argmax(axis=1))


def by_sklearn(method: str, images: np.ndarray, clusters: int, seed: int) -> np.ndarray:
    """Labels of scikit-learn's own, on the same rows of unit length."""
    from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering

    rows = images.reshape(len(images), -1).astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    linked = {"affinity": "nearest_neighbors", "n_neighbors": NEIGHBOURS}
    kinds: dict[str, Any] = {
        "kmeans": lambda: KMeans(clusters, n_init=10, random_state=seed),
        "spectral": lambda: SpectralClustering(clusters, random_state=seed, **linked),
        "agglomerative": lambda: AgglomerativeClustering(clusters, linkage="ward"),
    }
    labels: np.ndarray = kinds[method]().fit_predict(rows)
    return labels


def measured(run: Callable[[np.ndarray], np.ndarray], path: Path, count: int) -> Outcome:
    """One run on the first images of a file, in a process of its own."""
    images = np.array(np.load(path, mmap_mode="r")[:count])
    started, cpu = time.perf_counter(), time.process_time()
    labels = run(images)
    return Outcome(labels, time.perf_counter() - started, time.process_time() - cpu, peak_memory() or float("nan"))


def alone(run: Callable[[np.ndarray], np.ndarray], path: Path, count: int, minutes: float = 60) -> Outcome:
    """The same, in a new process, which is stopped after so many minutes.

    Raises:
        multiprocessing.TimeoutError: It was stopped.
    """
    with get_context("spawn").Pool(1) as pool:
        return pool.apply_async(measured, (run, path, count)).get(60 * minutes)


def sits_out(name: str, method: str, count: int, gigabytes: float) -> bool:
    """Whether scikit-learn's distances of all pairs, as doubles, are larger than the memory."""
    return name == "scikit-learn" and method == "agglomerative" and count * (count - 1) / 2 * 8 > gigabytes * 2**30


def compare(method: str, path: Path, labels: np.ndarray, count: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Both in turns; medians of time and memory, means of the scores."""
    contestants = {"dccm": by_dccm, "scikit-learn": by_sklearn}
    outcomes: dict[str, list[Outcome]] = {
        name: [] for name in contestants if not sits_out(name, method, count, arguments.memory)
    }
    clusters = len(np.unique(labels))
    table: dict[str, Any] = {"rounds": arguments.rounds, "threads": torch.get_num_threads()}
    for seed in range(arguments.rounds):
        for name in list(outcomes):
            run = partial(contestants[name], method, clusters=clusters, seed=seed)
            try:
                outcome = alone(run, path, count, arguments.limit)
            except TimeoutError:
                table[f"{name} stopped after minutes"] = arguments.limit
                del outcomes[name]
                continue
            outcomes[name].append(outcome)
            print(count, method, name, f"{outcome.seconds:.1f} s, {outcome.peak_memory_mb:.0f} MB", flush=True)
    for name, found in outcomes.items():
        each = [scores(labels[:count], outcome.labels) for outcome in found]
        table[name] = {
            "seconds": median(outcome.seconds for outcome in found),
            "cpu seconds": median(outcome.cpu_seconds for outcome in found),
            "peak_memory_mb": median(outcome.peak_memory_mb for outcome in found),
        } | {key: float(np.mean([one[key] for one in each])) for key in ("nmi", "acc", "ari")}
    if len(outcomes) == len(contestants):
        table["times faster"] = table["scikit-learn"]["seconds"] / table["dccm"]["seconds"]
    return table


def main() -> None:
    """Compare all methods on all counts, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--split")
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 60_000])
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=float, default=8.0, help="GiB of the machine")
    parser.add_argument("--limit", type=float, default=30.0, help="minutes after which a run is stopped")
    arguments = parser.parse_args()
    found = read(arguments.source, arguments.split)
    assert found.labels is not None
    order = np.random.default_rng(0).permutation(len(found.images))
    report: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    of_source = report.setdefault(Path(arguments.source).stem, {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        np.save(path, found.images[order])
        for count in (min(count, len(order)) for count in arguments.counts):
            for method in arguments.methods:
                table = compare(method, path, found.labels[order], count, arguments)
                print(json.dumps(table, indent=1), flush=True)
                of_source.setdefault(str(count), {})[method] = table
                RESULT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
