"""Write a run down for other programs, as corrected."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dccm.data.images import Skipped
from dccm.errors import require
from dccm.evaluation.labels import read_labels
from dccm.exporting.content import Content, Label, Missing, assignments_of, rows_of
from dccm.exporting.formats import Format, find_format
from dccm.exporting.images import write_missing
from dccm.exporting.labels import known_labels, plain_labels
from dccm.exporting.originals import Originals
from dccm.exporting.output import made_whole, mark
from dccm.files import write_csv
from dccm.progress import SILENT, Watcher
from dccm.runs.directory import RunDirectory


class Exported(NamedTuple):
    """What was written."""

    format: str
    output: Path
    images: int
    skipped: list[Skipped]
    """Files that the run left out, which are listed apart."""
    missing: list[Missing]
    """Images of the run that cannot be read any more."""
    notes: list[str]


def export(
    run: str | Path,
    to: str,
    output: str | Path | None = None,
    *,
    plain: bool = False,
    embedding: bool | None = None,
    labels: str | Path | None = None,
    images: Any = None,
    overwrite: bool = False,
    watcher: Watcher = SILENT,
) -> Exported:
    """Write a run, as corrected by then, for another program; whole or not at all.

    Args:
        run: Run directory, or the output folder of `predict`.
        to: A format: csv, parquet, jsonl, folders, ...
        output: File or folder to be made; None: named after the run, in the current folder.
        plain: Write text as it is also where a spreadsheet would take it for a formula.
        embedding: Whether to write the deep features; None: as is usual for the format.
        labels: True classes, as for `evaluate`; None: those that the source of the images states.
        images: Where the images are now, as for `read_images`; None: where the run got them.
        overwrite: Replace a file, or the folder of an earlier export.
        watcher: Is told how it gets on.
    """
    form = find_format(to)
    directory = RunDirectory(run)
    assignments = assignments_of(directory)
    path = Path(output) if output is not None else default_output(directory, to, form)
    _require_outside(path, directory)
    originals = Originals(directory, assignments.paths, images)
    known = _labels(directory, assignments.paths, labels, originals)
    wanted = form.embedding if embedding is None else embedding
    rows = rows_of(directory, assignments, labels=known, embedding=wanted)
    content = Content(directory, rows, originals, plain, watcher.training)
    skipped = directory.read_skipped()
    notes = _written(form, content, path, skipped, {"format": to, "run": str(run)}, overwrite=overwrite)
    return Exported(to, path, len(rows), skipped, content.missing, notes)


def default_output(directory: RunDirectory, to: str, form: Format) -> Path:
    """Where an export goes if nothing is said: beside no other, in the current folder."""
    name = directory.path.resolve().name
    return Path(f"{name}{form.suffix}" if form.suffix else f"{name}-{to}")


def skipped_beside(path: Path) -> Path:
    """The list of skipped files that belongs to a file that was exported."""
    return path.with_name(f"{path.stem}.skipped.csv")


def _written(
    form: Format,
    content: Content,
    path: Path,
    skipped: Sequence[Skipped],
    facts: dict[str, Any],
    *,
    overwrite: bool,
) -> list[str]:
    folder = not form.suffix
    with made_whole(path, folder=folder, overwrite=overwrite) as place:
        notes = list(form.write(content, place))
        if folder:
            write_missing(content, place / "missing.csv")
            _write_skipped(skipped, place / "skipped.csv")
            mark(place, facts | {"images": len(content.rows) - len(content.missing), "complete": True})
    if not folder and skipped:
        with made_whole(skipped_beside(path), folder=False, overwrite=True) as place:
            _write_skipped(skipped, place)
    return notes


def _write_skipped(skipped: Sequence[Skipped], path: Path) -> None:
    if skipped:
        write_csv(path, Skipped._fields, skipped)


def _labels(
    directory: RunDirectory, names: Sequence[str], labels: str | Path | None, originals: Originals
) -> list[Label] | None:
    if labels is not None:
        return plain_labels(read_labels(Path(labels), names, directory.source_folder()))
    return known_labels(directory, names, originals)


def _require_outside(path: Path, directory: RunDirectory) -> None:
    """A run directory holds what the run wrote, and nothing else."""
    # Of a link to itself Path.resolve makes an error that names no file.
    inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory.path))
    require(
        not inside, f"The output {path} lies in the run {directory.path}, which stays as it is. Choose another one."
    )
