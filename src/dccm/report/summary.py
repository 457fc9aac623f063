"""The first thing on the page: what came out, whether it is to be trusted, and where to look first, in plain words."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from dccm.report.cards import Card, Pair
from dccm.report.doubles import Doubles
from dccm.report.facts import warnings
from dccm.report.gathered import RunFiles
from dccm.report.truth import Truth
from dccm.report.words import amount, listed, percent_text
from dccm.runs.judgement import Trust, trust

_UNSURE = 0.5
"""Confidence below which an image is more likely wrong than right."""
_UNSTEADY, _FOUND = 0.8, 0.6
"""Shares below which a cluster is named: of its images that stay when perturbed, and of it that another run has."""
_NAMED = 4
_NO_GAP = 2.0
"""Gap below which two clusters are as one cloud that is cut in two."""


class Summary(NamedTuple):
    """A headline, and sentences below it."""

    trust: Trust
    sentences: list[Markup]


def summary(
    run: RunFiles, cards: list[Card], pairs: list[Pair], doubled: list[Doubles], known: Truth | None
) -> Summary:
    """What is worth saying of a run, the most important first."""
    told = [
        *_sizes(run, cards),
        *_against_labels(known),
        *_unsure(run),
        *_unsteady(run, cards),
        *_near(pairs),
        *_doubles(doubled),
        *_left_out(run),
        *_corrections(run),
    ]
    return Summary(trust(run.judgement, len(warnings(run))), told)


def _sizes(run: RunFiles, cards: list[Card]) -> Iterator[Markup]:
    full = [card.size for card in cards if card.size]
    empty = len(cards) - len(full)
    what = amount(len(run.assignments.paths), "image", "images")
    text = f"{what} in {amount(len(full), 'cluster', 'clusters')}"
    text += f" of {min(full):,} to {max(full):,} images" if min(full) < max(full) else ""
    yield Markup("{}{}.").format(text, f"; {amount(empty, 'cluster is', 'clusters are')} empty" if empty else "")


def _against_labels(known: Truth | None) -> Iterator[Markup]:
    if known is not None:
        text = Markup('{} of the images are in the cluster of <a href="#truth">their true class</a>.')
        yield text.format(percent_text(known.right))


def _unsure(run: RunFiles) -> Iterator[Markup]:
    """Raw confidences are no probabilities, so nothing is said of them."""
    surety, confidences = run.result.confidence, run.assignments.confidences
    if surety is None or surety.temperature is None:
        return
    count = int((confidences < _UNSURE).sum())
    if count:
        least = amount(count, "image is", "images are")
        yield Markup("{} more likely in a wrong cluster than in the right one: confidence below {}.").format(
            least, _UNSURE
        )


def _unsteady(run: RunFiles, cards: list[Card]) -> Iterator[Markup]:
    unsteady = [card for card in cards if card.unmoved < _UNSTEADY]
    if unsteady:
        text = "{} {} images when these are slightly perturbed: doubt {} first."
        loses = ("loses", "it") if len(unsteady) == 1 else ("lose", "them")
        yield Markup(text).format(_links(unsteady), *loses)
    if not run.judgement or not run.judgement.again or run.changes:
        return
    found = run.judgement.again[-1].found
    by_number = {card.group.number: card for card in cards}
    lost = [by_number[n] for n, share in enumerate(found) if share is not None and share < _FOUND and n in by_number]
    if lost:
        yield Markup("{} {} not found again with another seed.").format(
            _links(lost), "was" if len(lost) == 1 else "were"
        )


def _links(cards: list[Card]) -> Markup:
    """The first few clusters by name, each leading to its card."""
    link = Markup('<a href="#{}">{}</a>')
    links = [link.format(card.group.anchor, card.group.title) for card in cards[:_NAMED]]
    more = [Markup("{} others").format(len(cards) - _NAMED)] if len(cards) > _NAMED else []
    return Markup(listed([*links, *more]))


def _near(pairs: list[Pair]) -> Iterator[Markup]:
    close = [pair for pair in pairs if pair.gap < _NO_GAP]
    if close:
        one, other = close[0].groups
        more = f", and between {amount(len(close) - 1, 'other pair', 'other pairs')}" if len(close) > 1 else ""
        text = 'Nothing lies between {} and {}{}: <a href="#near">they may be one to you</a>.'
        yield Markup(text).format(one.title, other.title, more)


def _doubles(doubled: list[Doubles]) -> Iterator[Markup]:
    for kind in doubled:
        text = Markup('<a href="#duplicates">{}</a> {}{}.')
        apart = (
            f"; {amount(kind.apart, 'of them is', 'of them are')} in another cluster than that one"
            if kind.apart
            else ""
        )
        yield text.format(
            amount(kind.pairs, "image", "images"), f"{'is' if kind.pairs == 1 else 'are'} {kind.title}", apart
        )


def _left_out(run: RunFiles) -> Iterator[Markup]:
    if run.skipped:
        yield Markup('<a href="#skipped">{}</a> skipped.').format(amount(len(run.skipped), "file was", "files were"))
    rejected = int(run.assignments.rejected.sum())
    if rejected:
        text = "{} too unsure for any cluster; they stand under their best one here."
        yield Markup(text).format(amount(rejected, "image was", "images were"))


def _corrections(run: RunFiles) -> Iterator[Markup]:
    if run.changes:
        named = int(np.sum([bool(group.name) for group in run.groups]))
        made = amount(run.changes, "correction was", "corrections were")
        names = f"; {amount(named, 'cluster has', 'clusters have')} a name" if named else ""
        yield Markup("{} made by people, and this page shows the clusters as they are now{}.").format(made, names)
