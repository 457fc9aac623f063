"""Read a run directory and write what is in it as one self-contained HTML file."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from dccm.files import write_atomically
from dccm.grouping.spread import Spread, spread_of
from dccm.report import facts
from dccm.report.cards import Card, cards, near_pairs, sizes
from dccm.report.choice import choice_note
from dccm.report.curves import charts
from dccm.report.doubles import doubles
from dccm.report.flat import flat_map, map_script
from dccm.report.gathered import RunFiles, gather
from dccm.report.judged import judged
from dccm.report.pictures import Pictures
from dccm.report.summary import summary
from dccm.report.templates import fill
from dccm.report.tree import Leaf, cluster_tree, tree_chart
from dccm.report.truth import truth
from dccm.report.words import duration_text
from dccm.runs.directory import RunDirectory

_SKIPPED_SHOWN = 50


def write_report(directory: RunDirectory, labels: Path | None = None) -> Path:
    """Write `report.html` into a run directory.

    Args:
        directory: What `dccm cluster` wrote; nothing outside of it is read.
        labels: True labels, as for `evaluate`; None: those that the run itself knew.

    Returns:
        Path of the page; it needs no other file.
    """
    write_atomically(directory.report, render(gather(directory, labels)))
    return directory.report


def render(run: RunFiles) -> str:
    """The page as text."""
    pictures, spread = Pictures(run), _spread(run)
    made = cards(run, pictures, spread)
    pairs, doubled, known = near_pairs(run, made, spread), doubles(run, pictures), truth(run, pictures)
    mapped = flat_map(run)
    return fill(
        "report.html.jinja",
        **_facts(run),
        summary=summary(run, made, pairs, doubled, known),
        measures=judged(run.judgement),
        cards=made,
        map=mapped,
        script=map_script() if mapped else None,
        pairs=pairs,
        charts=charts(run, sizes(run)) | {"tree": _tree(run, made)},
        doubles=doubled,
        truth=known,
        outliers=_outliers(run, pictures),
        pixelated=max(run.thumbnails.images.shape[1:3]) <= 32,
    )


def _facts(run: RunFiles) -> dict[str, Any]:
    """What stands in the files as it is."""
    return {
        "result": run.result,
        "choice": choice_note(run.choice) if run.choice else "",
        "duration": duration_text(run.result.cost.seconds),
        "scores": facts.score_table(run.result),
        "warnings": facts.warnings(run),
        "has_epochs": bool(run.history),
        "skipped": run.skipped,
        "skipped_shown": _SKIPPED_SHOWN,
        "settings": facts.settings(run.result),
        "versions": run.result.versions,
    }


def _spread(run: RunFiles) -> Spread | None:
    """Where the clusters lie; None without features, or with broken ones."""
    if run.embedding is None:
        return None
    return spread_of(run.embedding, run.assignments.clusters, len(run.groups))


def _outliers(run: RunFiles, pictures: Pictures) -> dict[str, Any]:
    """How many images are far from everything, and a strip of some of them."""
    far = run.assignments.outliers
    strip = [pictures.thumbnail(int(row)) for row in pictures.rows if far[row]]
    return {"count": int(far.sum()), "strip": strip}


def _tree(run: RunFiles, made: list[Card]) -> Markup:
    """How the clusters merge; nothing without features."""
    if run.embedding is None:
        return Markup("")
    by_group = {card.group: card for card in made}
    shown, merges = cluster_tree(run.embedding, run.assignments)
    found = [by_group[run.groups[place]] for place in shown]
    leaves = [Leaf(card.group.title, card.group.anchor, card.size, card.picture) for card in found]
    return tree_chart(leaves, merges, title="How the clusters merge")
