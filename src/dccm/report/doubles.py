"""Images that are there more than once, exactly or nearly, and those of them that fell into different clusters."""

from typing import NamedTuple

from dccm.data.images import Duplicate
from dccm.report.gathered import RunFiles
from dccm.report.groups import Group
from dccm.report.pictures import Pictures

_SHOWN = 24
_LOOKED_AT = 100_000
"""Pairs that are looked at, of more the first ones."""


class Double(NamedTuple):
    """Two images that are the same, or nearly."""

    paths: tuple[str, str]
    uris: tuple[str, str]
    """Empty where no picture is kept."""
    groups: tuple[Group, Group] | None
    """Their clusters, where these differ."""


class Doubles(NamedTuple):
    """All pairs of a kind."""

    title: str
    pairs: int
    apart: int
    """Pairs in different clusters."""
    shown: list[Double]


def doubles(run: RunFiles, pictures: Pictures) -> list[Doubles]:
    """Exact and near duplicates; a kind of which there are none is left out."""
    kinds = [("the same as an earlier one", run.duplicates), ("nearly the same as an earlier one", run.near_duplicates)]
    rows = _rows_of([pair for _, pairs in kinds for pair in pairs[:_LOOKED_AT]], run)
    return [_of_kind(title, pairs[:_LOOKED_AT], len(pairs), rows, run, pictures) for title, pairs in kinds if pairs]


def _rows_of(pairs: list[Duplicate], run: RunFiles) -> dict[str, int]:
    """Rows of the images that pairs name; a path may be there twice, and its first row is as good."""
    wanted = {name for pair in pairs for name in pair}
    found: dict[str, int] = {}
    for row, name in enumerate(run.assignments.paths if wanted else []):
        if name in wanted:
            found.setdefault(name, row)
    return found


def _of_kind(
    title: str, pairs: list[Duplicate], count: int, rows: dict[str, int], run: RunFiles, pictures: Pictures
) -> Doubles:
    clusters, apart = run.assignments.clusters, 0
    shown: list[Double] = []
    together: list[Double] = []
    for pair in pairs:
        places = tuple(rows.get(name, -1) for name in pair)
        differ = min(places) >= 0 and clusters[places[0]] != clusters[places[1]]
        apart += differ
        kept = all(place in pictures for place in places)
        if (differ and len(shown) < _SHOWN) or (kept and len(together) < _SHOWN):
            groups = (run.groups[clusters[places[0]]], run.groups[clusters[places[1]]]) if differ else None
            double = Double((pair[0], pair[1]), (pictures.uri(places[0]), pictures.uri(places[1])), groups)
            (shown if differ else together).append(double)
    return Doubles(title, count, apart, [*shown, *together][:_SHOWN])
