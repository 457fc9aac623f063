"""The outcome of a run in numbers, as `result.json` holds it."""

import platform
from dataclasses import dataclass, field, fields
from importlib import metadata
from typing import Any

from dccm.errors import counted
from dccm.evaluation.baseline import Baseline
from dccm.runs.improved import Improved, improved_from
from dccm.runs.surety import Surety, surety_from

_SHOWN = {"acc", "nmi", "ari"}
"""Scores that every page and table shows."""
_ROUNDING = 1e-6
"""By which a score may pass its bounds."""
_MOST = 1e15
"""Seconds, passes or megabytes; sums of more could have no end."""


@dataclass(frozen=True)
class Cost:
    """What a run took."""

    seconds: float
    """Of training."""
    passes: float
    """Gradient passes over the images."""
    peak_memory_mb: float | None
    """Largest memory of the process, where the system tells it."""


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run."""

    method: str
    preset: str
    dataset: str | None
    n_images: int
    n_skipped: int
    """Files that could not be read."""
    n_duplicates: int
    """Images that are the same as an earlier one."""
    n_clusters: int
    seed: int
    settings: dict[str, Any]
    scores: dict[str, float] | None
    """Against true labels, where they are known; last epoch."""
    baseline: Baseline | None
    """A simple method on the same images, where one was asked for."""
    cost: Cost
    warnings: list[str]
    pretrained: str | None = None
    """What must be said of the clusters where a pretrained encoder saw the images first."""
    confidence: Surety | None = None
    """How sure the run is of its clusters; None: it is of an older version."""
    improved: Improved | None = None
    """What it learnt from people; None: it goes on from no other run."""
    versions: dict[str, str] = field(default_factory=lambda: versions())

    @property
    def clusters_there(self) -> int:
        """How many clusters there are: those that people merged into others keep no number."""
        return self.n_clusters - len(self.improved.gone if self.improved else ())

    def summary(self) -> str:
        """The outcome in a few lines."""
        minutes, seconds = divmod(round(self.cost.seconds), 60)
        lines = [
            f"{counted(self.n_images, 'image')} in {counted(self.clusters_there, 'cluster')}; "
            f"{minutes}:{seconds:02d} minutes of training."
        ]
        rows = [(f"{self.method} ({self.preset})", self.scores)]
        rows += [(self.baseline.name, self.baseline.scores)] if self.baseline else []
        lines += [f"  {name:20s}  {format_scores(scores)}" for name, scores in rows if scores]
        lines += [self.confidence.sentence()] if self.confidence else []
        lines += [self.improved.sentence()] if self.improved else []
        lines += [self.pretrained] if self.pretrained else []
        return "\n".join(lines + [f"Warning: {warning}" for warning in self.warnings])


def pretrained_note(encoder: str) -> str:
    """What must be said wherever numbers of a run on pretrained features stand."""
    return (
        f"Clusters of features of {encoder}, which was trained on other images and may have seen their labels: "
        "not to be compared with what is learnt from these images alone."
    )


def format_scores(scores: dict[str, float]) -> str:
    """ACC, NMI and ARI in one line."""
    return "  ".join(f"{name.upper()} {scores[name]:.3f}" for name in ("acc", "nmi", "ari"))


def versions() -> dict[str, str]:
    """Versions of all that a result depends on."""
    packages = {name: metadata.version(name) for name in ("dccm", "torch", "numpy", "scikit-learn", "pillow")}
    return {"python": platform.python_version(), "machine": platform.machine()} | packages


def result_from(document: object) -> RunResult:
    """The result that a JSON document describes; `ValueError` says what is wrong with it."""
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    document = {"pretrained": None, "confidence": None, "improved": None} | document
    wanted = [entry.name for entry in fields(RunResult)]
    for name in wanted:
        if name not in document:
            raise ValueError(f"{name} is missing")
        _check(name, document[name])
    values: dict[str, Any] = {name: document[name] for name in wanted}
    baseline, cost = values["baseline"], values["cost"]
    if values["n_clusters"] > values["n_images"]:
        raise ValueError("n_clusters must not exceed n_images")
    values["baseline"] = baseline and Baseline(baseline["name"], baseline["scores"])
    values["confidence"] = values["confidence"] and surety_from(values["confidence"])
    values["improved"] = values["improved"] and improved_from(values["improved"])
    values["cost"] = Cost(*(cost[entry.name] for entry in fields(Cost)))
    return RunResult(**values)


def _check(name: str, value: object) -> None:
    """Refuse a value of `result.json` that is of the wrong kind."""
    rule, sound = _RULES[name]
    if not sound(value):
        shown = f"{name} must be {rule}"
        raise ValueError(f"{shown}, got {value!r}" if value is None or isinstance(value, str | int) else shown)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_scores(value: object) -> bool:
    return isinstance(value, dict) and set(value) >= _SHOWN and all(map(_is_score, value.values()))


def _is_score(value: object) -> bool:
    return _is_number(value) and -1 - _ROUNDING <= float(str(value)) <= 1 + _ROUNDING


def _is_baseline(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and _are_scores(value.get("scores"))


def _is_cost(value: object) -> bool:
    if not isinstance(value, dict) or not _is_amount(value.get("seconds")) or not _is_amount(value.get("passes")):
        return False
    return "peak_memory_mb" in value and (value["peak_memory_mb"] is None or _is_amount(value["peak_memory_mb"]))


def _is_amount(value: object) -> bool:
    return _is_number(value) and 0 <= float(str(value)) <= _MOST


_TEXT = ("text", lambda value: isinstance(value, str))
_TEXT_OR_NULL = ("text or null", lambda value: value is None or isinstance(value, str))
_COUNT = ("a whole number from 0 up", _is_count)
_FROM_ONE = ("a whole number from 1 up", lambda value: _is_count(value) and value >= 1)
_OBJECT_OR_NULL = ("an object or null", lambda value: value is None or isinstance(value, dict))
_OBJECT = ("an object", lambda value: isinstance(value, dict))
_RULES: dict[str, tuple[str, Any]] = {
    "method": _TEXT,
    "preset": _TEXT,
    "dataset": _TEXT_OR_NULL,
    "pretrained": _TEXT_OR_NULL,
    "confidence": _OBJECT_OR_NULL,
    "improved": _OBJECT_OR_NULL,
    "n_images": _FROM_ONE,
    "n_skipped": _COUNT,
    "n_duplicates": _COUNT,
    "n_clusters": _FROM_ONE,
    "seed": _COUNT,
    "settings": _OBJECT,
    "scores": (
        "an object of numbers from -1 to 1 with acc, nmi and ari, or null",
        lambda value: value is None or _are_scores(value),
    ),
    "baseline": ("null, or an object with its name and scores", lambda value: value is None or _is_baseline(value)),
    "cost": ("an object with seconds, passes and peak_memory_mb, from 0 up", _is_cost),
    "warnings": (
        "a list of sentences",
        lambda value: isinstance(value, list) and all(isinstance(w, str) for w in value),
    ),
    "versions": _OBJECT,
}
"""What each value of `result.json` must be, in words and as a test."""
