"""Scores, settings and warnings of a run, as tables and lists."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dccm.report.gathered import RunFiles
from dccm.report.words import number_of, number_text
from dccm.runs.result import RunResult

_SCORE_NAMES = {"acc": "Accuracy", "nmi": "NMI", "ari": "ARI"}
_SHOWN_ELSEWHERE = {"scores", "baseline", "pretrained", "improved", "confidence", "warnings", "cost", "versions"}


def warnings(run: RunFiles) -> list[str]:
    """Those of the whole run and of its last epoch; earlier ones no longer hold."""
    last = run.history[-1].get("warnings") if run.history else None
    return list(dict.fromkeys([*run.result.warnings, *(last or [])]))


def score_table(result: RunResult) -> dict[str, Any] | None:
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


def settings(result: RunResult) -> dict[str, str]:
    """Everything in result.json that has no place of its own on the page, nested names joined by a dot."""
    found: dict[str, str] = {}
    for key, value in asdict(result).items():
        if key not in _SHOWN_ELSEWHERE:
            found |= _flat("" if key == "settings" else key, value)
    return found | {
        "gradient passes over the images": number_text(result.cost.passes),
        "peak memory (MB)": number_text(result.cost.peak_memory_mb),
    }


def _flat(name: str, value: object) -> Mapping[str, str]:
    if isinstance(value, dict):
        parts = {f"{name}.{inner}" if name else str(inner): part for inner, part in value.items()}
        return {key: text for inner, part in parts.items() for key, text in _flat(inner, part).items()}
    return {name: "–" if value is None else value if isinstance(value, str) else json.dumps(value)}
