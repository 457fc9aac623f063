"""Read a run directory and write what is in it as one self-contained HTML file."""

import base64
import io
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from dccm.data.images import Skipped
from dccm.files import write_atomically
from dccm.report import plots, sureness
from dccm.report.choice import choice_chart, choice_note
from dccm.report.templates import fill
from dccm.report.tree import Leaf, cluster_tree, tree_chart
from dccm.report.words import duration_text, number_of, number_text
from dccm.runs.choice import Choice, read_choice
from dccm.runs.contents import Assignments, Record, Thumbnails
from dccm.runs.directory import RunDirectory
from dccm.runs.result import RunResult

_SKIPPED_SHOWN = 50
_COLLAPSE_CURVES = {
    "confident_share": "confident images",
    "linked_share": "linked pairs",
    "entropy": "entropy of cluster sizes",
}
_NOT_A_LOSS = {"epoch", "passes", "cluster_sizes", "dead_clusters", "warnings", *_COLLAPSE_CURVES}
_SCORE_NAMES = {"acc": "Accuracy", "nmi": "NMI", "ari": "ARI"}
_SHOWN_ELSEWHERE = {"scores", "baseline", "pretrained", "confidence", "warnings", "cost", "versions"}
_MANY_THUMBNAILS = 1500
"""From here on thumbnails are made smaller, so that the page stays at a few megabytes."""


@dataclass(frozen=True)
class RunFiles:
    """All that the page needs of a run directory."""

    result: RunResult
    history: list[Record]
    assignments: Assignments
    thumbnails: Thumbnails
    skipped: list[Skipped]
    choice: Choice | None = None
    embedding: NDArray[np.float32] | None = None


class Thumbnail(NamedTuple):
    """An image on a contact sheet."""

    uri: str
    path: str
    confidence: float


class Card(NamedTuple):
    """What the page says about one cluster."""

    number: int
    size: int
    share: float
    mean_confidence: float
    thumbnails: list[Thumbnail]


def write_report(directory: RunDirectory) -> Path:
    """Write `report.html` into a run directory.

    Args:
        directory: What `dccm cluster` wrote; nothing outside of it is read.

    Returns:
        Path of the page; it needs no other file.
    """
    write_atomically(directory.report, render(gather(directory)))
    return directory.report


def gather(directory: RunDirectory) -> RunFiles:
    """Read the files of a finished run; a missing or broken one is named in one sentence."""
    directory.require()
    result = directory.read_result()
    return RunFiles(
        result=result,
        history=directory.read_history(),
        assignments=directory.read_assignments(result),
        thumbnails=directory.read_thumbnails(result.n_images),
        skipped=directory.read_skipped(),
        choice=read_choice(directory.choice),
        embedding=_embedding(directory, result),
    )


def _embedding(directory: RunDirectory, result: RunResult) -> NDArray[np.float32] | None:
    """The feature of each image; None where a run kept none, or one that is not of these images."""
    if not directory.embedding.is_file():
        return None
    features = directory.read_embedding()
    return features if len(features) == result.n_images else None


def render(run: RunFiles) -> str:
    """The page as text."""
    cards = _cards(run)
    return fill(
        "report.html.jinja",
        result=run.result,
        choice=choice_note(run.choice) if run.choice else "",
        duration=duration_text(run.result.cost.seconds),
        scores=_score_table(run.result),
        warnings=_warnings(run),
        cards=cards,
        charts=_charts(run) | {"tree": _tree(run, cards)},
        outliers=_outliers(run),
        pixelated=max(run.thumbnails.images.shape[1:3]) <= 32,
        skipped=run.skipped,
        skipped_shown=_SKIPPED_SHOWN,
        settings=_settings(run.result),
        versions=run.result.versions,
    )


def _cards(run: RunFiles) -> list[Card]:
    """One card per cluster, the largest first; empty clusters have one too."""
    clusters, confidences = run.assignments.clusters, run.assignments.confidences
    sheets = _contact_sheets(run)
    cards = []
    for number, size in enumerate(_sizes(run)):
        known = confidences[(clusters == number) & np.isfinite(confidences)]
        mean = float(known.mean()) if len(known) else math.nan
        cards.append(Card(number, size, size / len(clusters), mean, sheets.get(number, [])))
    return sorted(cards, key=lambda card: -card.size)


def _sizes(run: RunFiles) -> list[int]:
    return [int(size) for size in np.bincount(run.assignments.clusters, minlength=run.result.n_clusters)]


def _contact_sheets(run: RunFiles) -> dict[int, list[Thumbnail]]:
    """The thumbnails of each cluster, most confident first."""
    paths, clusters, confidences = run.assignments[:3]
    images, rows = run.thumbnails
    sheets: dict[int, list[Thumbnail]] = {}
    for i in np.argsort(-confidences[rows], kind="stable"):
        row = rows[i]
        if run.assignments.outliers[row]:
            continue  # They have a place of their own.
        uri = image_uri(images[i], many=len(images) > _MANY_THUMBNAILS)
        sheets.setdefault(int(clusters[row]), []).append(Thumbnail(uri, paths[row], float(confidences[row])))
    return sheets


def _outliers(run: RunFiles) -> dict[str, Any]:
    """How many images are far from everything, and a strip of some of them."""
    paths, _, confidences, _, outliers = run.assignments
    strip = [
        Thumbnail(image_uri(image), paths[row], float(confidences[row]))
        for image, row in zip(*run.thumbnails)
        if outliers[row]
    ]
    return {"count": int(outliers.sum()), "strip": strip}


def image_uri(pixels: NDArray[np.uint8], *, many: bool = False) -> str:
    """An image as a data URI: PNG if it is tiny, else JPEG; large ones are shrunk.

    Args:
        pixels: (H, W, C); of many channels the first three are shown, of two the first.
        many: Whether the page holds so many that each has to be smaller.
    """
    shown = pixels[:, :, :3] if pixels.shape[2] >= 3 else pixels[:, :, 0]
    image = Image.fromarray(np.ascontiguousarray(shown))
    largest, lossless = (48, 16) if many else (96, 32)
    image.thumbnail((largest, largest))
    content = io.BytesIO()
    kind = "png" if max(image.size) <= lossless else "jpeg"
    image.save(content, kind, quality=85, optimize=True)
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode('ascii')}"


def _charts(run: RunFiles) -> dict[str, Markup | str]:
    epochs = [number_of(record["epoch"]) for record in run.history]
    collapse = {
        label: [number_of(record.get(name)) for record in run.history] for name, label in _COLLAPSE_CURVES.items()
    }
    return {
        "sizes": plots.bar_chart(_sizes(run), title="Cluster sizes"),
        "loss": plots.line_chart(_loss_terms(run.history), epochs, title="Loss", y_label="Loss"),
        "collapse": plots.line_chart(
            collapse, epochs, title="Signs of collapse", y_label="Share (0 to 1)", at_least=(0, 1)
        ),
        "choice": choice_chart(run.choice) if run.choice else "",
        "dead": _dead_clusters_text(run.history),
        "confidence": plots.histogram(run.assignments.confidences.tolist(), title="Confidence of the images"),
        "reliability": sureness.reliability_chart(run.result.confidence),
    }


def _tree(run: RunFiles, cards: list[Card]) -> Markup:
    """How the clusters merge; nothing without features."""
    if run.embedding is None:
        return Markup("")
    by_number = {card.number: card for card in cards}
    shown, merges = cluster_tree(run.embedding, run.assignments)
    leaves = [
        Leaf(number, by_number[number].size, next((image.uri for image in by_number[number].thumbnails), ""))
        for number in shown
    ]
    return tree_chart(leaves, merges, title="How the clusters merge")


def _loss_terms(history: list[Record]) -> dict[str, list[float]]:
    """Every number in the history that is not known to be something else, by name."""
    names = dict.fromkeys(name for record in history for name in record if name not in _NOT_A_LOSS)
    terms = {name: [number_of(record.get(name)) for record in history] for name in names}
    return {name: values for name, values in terms.items() if any(map(math.isfinite, values))}


def _dead_clusters_text(history: list[Record]) -> str:
    dead = {record["epoch"]: number_of(record.get("dead_clusters")) for record in history}
    dead = {epoch: count for epoch, count in dead.items() if math.isfinite(count)}
    if not dead:
        return ""
    if not any(dead.values()):
        return "In no epoch was a cluster without images."
    worst, last = max(dead, key=lambda epoch: dead[epoch]), max(dead)
    return f"Clusters without images: {dead[last]:g} in the last epoch, at most {dead[worst]:g} (epoch {worst:g})."


def _warnings(run: RunFiles) -> list[str]:
    """Those of the whole run and of its last epoch; earlier ones no longer hold."""
    last = run.history[-1].get("warnings") if run.history else None
    return list(dict.fromkeys([*run.result.warnings, *(last or [])]))


def _score_table(result: RunResult) -> dict[str, Any] | None:
    """Names of the scores and a row of values for the run and for the baseline; None without true labels."""
    ours = result.scores or {}
    theirs = result.baseline.scores if result.baseline else {}
    names = list(ours | theirs)
    if not names:
        return None
    rows = [(f"{result.method} (this run)", ours)] if ours else []
    rows += [(result.baseline.name, theirs)] if result.baseline and theirs else []
    return {
        "names": [_SCORE_NAMES.get(name, name.replace("_", " ").capitalize()) for name in names],
        "rows": [(label, [number_of(scores.get(name)) for name in names]) for label, scores in rows],
    }


def _settings(result: RunResult) -> dict[str, str]:
    """Everything in result.json that has no place of its own on the page, nested names joined by a dot."""
    settings = {
        name: text
        for key, value in asdict(result).items()
        if key not in _SHOWN_ELSEWHERE
        for name, text in _flat(key, value).items()
    }
    return settings | {
        "gradient passes over the images": number_text(result.cost.passes),
        "peak memory (MB)": number_text(result.cost.peak_memory_mb),
    }


def _flat(name: str, value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {key: text for inner, part in value.items() for key, text in _flat(f"{name}.{inner}", part).items()}
    return {name: "–" if value is None else value if isinstance(value, str) else json.dumps(value)}
