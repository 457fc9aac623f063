"""From finished runs to tables, figures and the page of all."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dccm.errors import UserError, require
from dccm.experiments.page import write_page
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need, Shown, Target
from dccm.experiments.worker import is_full_disk

_OF_IMAGES = ("image_size", "fit")
"""Settings that decide how images are prepared."""


class Made(NamedTuple):
    """What became of finished runs."""

    shown: dict[str, Shown]
    """Tables and figures by name."""
    files: dict[str, list[Path]]
    """Of each."""
    missing: dict[str, str]
    """What is not there by name, with the reason: data sets, runs, tables and figures."""


def make_all(
    targets: dict[str, Target], request: Request, results: Results, needs: list[Need], missing: dict[str, str]
) -> Made:
    """Make tables, figures and the page; what cannot be made is named, and the others are.

    Args:
        targets: By name.
        request: Under which the runs were made.
        results: Where they are.
        needs: All runs.
        missing: Data sets and runs that are not there, with the reason.
    """
    require_same_images((need.spec for need in needs), results)
    made = Made({}, {}, dict(missing))
    with results.writing():
        for name, target in targets.items():
            try:
                shown = target.make(request, results)
                made.files[name] = shown.save(results.path, name)
                made.shown[name] = shown
            except UserError as error:
                if is_full_disk(error):
                    raise
                made.missing[name] = str(error)
        titles = {name: target.title for name, target in targets.items()}
        write_page(results, titles, made.shown, made.files, needs, made.missing)
    return made


def require_same_images(specs: Iterable[RunSpec], results: Results) -> None:
    """Refuse to compare runs whose images changed between them, as when a place was given to another file."""
    found: dict[tuple[object, ...], tuple[str, str]] = {}
    for spec in specs:
        if results.is_finished(spec):
            prepared = tuple(pair for pair in spec.settings if pair[0] in _OF_IMAGES)
            alike = (spec.dataset, spec.limit, spec.split, prepared)
            checksum = results.run(spec).read_config().begun.checksum
            first, other = found.setdefault(alike, (checksum, spec.key))
            require(
                first == checksum,
                f"The runs {other} and {spec.key} in {results.path} are of different images, though both are called "
                f"'{spec.dataset}', and do not belong into one table. Delete one, or choose another output folder.",
            )
