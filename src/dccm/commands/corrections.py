"""The corrections of a run as lines of JSON: written, and taken over."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from dccm.corrections.exchange import as_lines, from_lines
from dccm.corrections.of_run import open_log
from dccm.errors import require
from dccm.runs.directory import RunDirectory


def export_corrections(run: str | Path) -> Iterator[str]:
    """The log of a run, a line for each change; nothing for a run that nobody corrected."""
    directory = RunDirectory(run)
    directory.require()
    result = directory.read_result()
    assignments = directory.read_assignments(result)
    if not directory.corrections.is_file():
        return
    log = open_log(directory, assignments, result.n_clusters, read_only=True)
    try:
        yield from as_lines(log.entries(), assignments.paths)
    finally:
        log.close()


def import_corrections(run: str | Path, lines: Iterable[str]) -> int:
    """Add changes to the log of a run, all or none; returns how many. What was undone in them is left out."""
    directory = RunDirectory(run)
    directory.require()
    result = directory.read_result()
    assignments = directory.read_assignments(result)
    changes = from_lines(lines, assignments.paths)
    require(len(changes) > 0, "The lines hold no change. Give what --export wrote.")
    log = open_log(directory, assignments, result.n_clusters)
    try:
        log.write([(who or "import", change) for who, change in changes])
    finally:
        log.close()
    return len(changes)
