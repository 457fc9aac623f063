"""Run directories for the tests of the report, and a page to be asked about."""

import base64
import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from dccm.report import write_report
from dccm.runs.directory import RunDirectory

HOSTILE_PATHS = [
    "<script>alert(1)</script>.png",
    'a "quoted", comma.png',
    "two\nlines.png",
    "\U0001f600 smile.png",
    "' onerror='alert(2).png",
]


class Page(HTMLParser):
    """The parts of a page that the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def titles(self) -> list[str]:
        return [image["title"] or "" for image in self.all("img")]

    def cards(self) -> list[str]:
        return self.text.split('<article class="card"')[1:]


def epoch_record(epoch: int, epochs: int) -> dict[str, Any]:
    done = epoch / epochs
    return {
        "epoch": epoch,
        "passes": 2.0 * epoch,
        "loss": 2.2 * np.exp(-2 * done) + 0.4,
        "graph": 0.6 * np.exp(-3 * done) + 0.08,
        "label": 1.1 * np.exp(-2 * done) + 0.2,
        "information": 0.5 * np.exp(-1 * done) + 0.12,
        "cluster_sizes": [180] * 10,
        "dead_clusters": max(0, 4 - epoch),
        "entropy": 1 - 0.5 * np.exp(-5 * done),
        "confident_share": 0.9 * done**0.5,
        "linked_share": 0.35 * np.exp(-4 * done) + 0.1,
        "warnings": [] if epoch > 4 else [f"{4 - epoch} of 10 clusters hold no image."],
    }


def write_csv(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_thumbnails(run: Path, images: np.ndarray, clusters: np.ndarray, confidences: np.ndarray) -> None:
    """At most 24 of each cluster, the surest ones, in an order that says nothing."""
    order = np.argsort(-confidences)
    kept = [row for k in range(int(clusters.max()) + 1) for row in [i for i in order if clusters[i] == k][:24]]
    rows = np.random.default_rng(1).permutation(kept)
    np.savez(run / "thumbnails.npz", images=images[rows], row=rows)


def write_run(run: Path, images: np.ndarray | None = None, epochs: int = 30) -> Path:
    """A run directory over the handwritten digits: cluster 9 is empty, its images went to cluster 3."""
    digits = load_digits()
    generator = np.random.default_rng(0)
    if images is None:
        images = (digits.images[..., None] * 255 / 16).astype(np.uint8)
    clusters = np.where(digits.target == 9, 3, digits.target)[: len(images)]
    confidences = generator.beta(6, 1, len(images)).round(4)
    paths = [f"digits/{number:04d}.png" for number in range(len(images))]
    for row, path in enumerate(HOSTILE_PATHS):
        paths[row], confidences[row] = path, 0.9999
    run.mkdir(parents=True, exist_ok=True)
    write_csv(run / "assignments.csv", [("path", "cluster", "confidence"), *zip(paths, clusters, confidences)])
    write_thumbnails(run, images, clusters, confidences)
    write_csv(run / "skipped.csv", [("path", "reason"), *((f"bad,{i}.png", "cut short") for i in range(60))])
    history = [json.dumps(epoch_record(epoch, epochs)) for epoch in range(1, epochs + 1)]
    (run / "history.jsonl").write_text("".join(f"{line}\n" for line in history))
    (run / "result.json").write_text(json.dumps(result_of(len(images))))
    return run


def result_of(n_images: int) -> dict[str, Any]:
    return {
        "method": "dccm",
        "preset": "digits",
        "dataset": "digits",
        "n_images": n_images,
        "n_skipped": 60,
        "n_duplicates": 0,
        "n_clusters": 10,
        "seed": 0,
        "settings": {"n_clusters": 10, "label_weight": 5.0},
        "scores": {"acc": 0.8431, "nmi": 0.801, "ari": 0.745},
        "baseline": {"name": "k-means on pixels", "scores": {"acc": 0.6917, "nmi": 0.672, "ari": 0.558}},
        "versions": {"dccm": "0.1.0", "python": "3.11.7"},
        "cost": {"seconds": 200.4, "peak_memory_mb": 812.5, "passes": 60.0},
        "warnings": ["1 of 10 clusters hold no image. Ask for fewer clusters."],
    }


def change_result(run: Path, **changes: object) -> None:
    path = run / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def page_of(run: Path) -> Page:
    return Page(write_report(RunDirectory(run)).read_text("utf-8"))


def decoded(uri: str | None) -> Image.Image:
    assert uri is not None
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",", 1)[1])))
