"""The charts of a run: sizes, what it learnt epoch by epoch, confidence."""

import math

from markupsafe import Markup

from dccm.report import plots, sureness
from dccm.report.choice import choice_chart
from dccm.report.gathered import RunFiles
from dccm.report.words import number_of
from dccm.runs.contents import Record

_COLLAPSE_CURVES = {
    "confident_share": "confident images",
    "linked_share": "linked pairs",
    "entropy": "entropy of cluster sizes",
}
_NOT_A_LOSS = {"epoch", "passes", "cluster_sizes", "dead_clusters", "warnings", *_COLLAPSE_CURVES}
_FEWEST_EPOCHS = 2
"""Of a single one there is no course to be drawn."""


def charts(run: RunFiles, sizes: list[int]) -> dict[str, Markup | str]:
    """All charts by name; what there is nothing to draw of is empty."""
    return {
        "sizes": _sizes(run, sizes),
        "choice": choice_chart(run.choice) if run.choice else "",
        "confidence": plots.histogram(run.assignments.confidences.tolist(), title="Confidence of the images"),
        "reliability": sureness.reliability_chart(run.result.confidence),
        **_courses(run.history),
    }


def _sizes(run: RunFiles, sizes: list[int]) -> Markup:
    """Bars by number; clusters that people made may have higher ones than there are clusters."""
    of = {group.number: size for group, size in zip(run.groups, sizes) if group.number >= 0}
    last = max(of, default=0)
    if last > 2 * len(of) + 50:
        return Markup("")
    return plots.bar_chart([of.get(number, 0) for number in range(last + 1)], title="Cluster sizes")


def _courses(history: list[Record]) -> dict[str, Markup | str]:
    """Loss and signs of collapse over the epochs, or in words where there was one epoch alone."""
    epochs = [number_of(record["epoch"]) for record in history]
    loss = _loss_terms(history)
    collapse = {label: [number_of(record.get(name)) for record in history] for name, label in _COLLAPSE_CURVES.items()}
    if len(epochs) < _FEWEST_EPOCHS:
        return {"loss": "", "collapse": "", "dead": "", "only": _in_words(loss | collapse)}
    return {
        "loss": plots.line_chart(loss, epochs, title="Loss", y_label="Loss"),
        "collapse": plots.line_chart(
            collapse, epochs, title="Signs of collapse", y_label="Share (0 to 1)", at_least=(0, 1)
        ),
        "dead": _dead_clusters_text(history),
        "only": "",
    }


def _in_words(series: dict[str, list[float]]) -> str:
    """The values of the only epoch."""
    return ", ".join(
        f"{name} {value:.3f}" for name, values in series.items() for value in values if math.isfinite(value)
    )


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
