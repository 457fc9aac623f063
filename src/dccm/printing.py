"""What commands found, on standard output: as words and tables for people, as CSV or JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from dccm.data.images import ImageSet
from dccm.errors import UserError, counted, visible
from dccm.experiments.cells import Rows
from dccm.experiments.formats import print_rich
from dccm.files import csv_lines
from dccm.runs.contents import ASSIGNMENT_COLUMNS, assignment_rows
from dccm.runs.judgement import measures, read_judgement, trust
from dccm.runs.parquet import parquet_available

_MOVED_SHOWN = 20

if TYPE_CHECKING:  # They come with torch, which takes seconds.
    from dccm.commands.choose_k import Chosen
    from dccm.commands.compare import Compared
    from dccm.commands.embed import Embedded
    from dccm.commands.export import Exported
    from dccm.commands.judge import Judged
    from dccm.commands.predict import Predicted
    from dccm.commands.reproduce import Reproduced
    from dccm.evaluation.probe import Probed
    from dccm.fleet.run import Summary
    from dccm.runs.run import Clustering

_SHOWN = 20
"""Lines of a kind that a person reads; of 50,000 nobody reads one."""


def print_clustering(clustering: "Clustering", as_json: bool) -> None:
    """The outcome of a run, and where everything is."""
    directory, image_set = clustering.directory, clustering.image_set
    if as_json:
        print(json.dumps(asdict(clustering.result)))
        return
    print(visible(clustering.result.summary(), keep="\n"))
    judged = read_judgement(directory.judgement)
    print(trust(judged, len(clustering.result.warnings)).headline)
    if image_set.skipped:
        were = "was" if len(image_set.skipped) == 1 else "were"
        _say(f"{counted(len(image_set.skipped), 'file')} {were} skipped; {directory.skipped} says why.")
    if image_set.duplicates:
        are = "is" if len(image_set.duplicates) == 1 else "are"
        _say(f"{counted(len(image_set.duplicates), 'image')} {are} there more than once; see {directory.duplicates}.")
    if not parquet_available():
        print("No parquet files were written: they need pyarrow. Get it with: pip install 'dccm[data]'")
    _show(Assignments=directory.assignments, Model=directory.model, Report=directory.report)


def print_prepared(image_set: ImageSet, as_json: bool) -> None:
    """What images are, and what is odd about them."""
    count, height, width, channels = image_set.images.shape
    if as_json:
        shape = {"images": count, "height": height, "width": width, "channels": channels}
        odd = {name: [row._asdict() for row in getattr(image_set, name)] for name in ("skipped", "duplicates")}
        print(json.dumps(shape | odd))
        return
    print(f"{counted(count, 'image')} of {height} x {width} x {channels}.")
    _print_some([f"skipped    {path}: {reason}" for path, reason in image_set.skipped[:_SHOWN]], image_set.skipped)
    same = [f"duplicate  {path} is the same as {other}" for path, other in image_set.duplicates[:_SHOWN]]
    _print_some(same, image_set.duplicates)
    print(f"{counted(len(image_set.skipped), 'file')} skipped, {counted(len(image_set.duplicates), 'duplicate')}.")


def _print_some(lines: list[str], of: Sequence[object], stream: TextIO | None = None) -> None:
    """A line for each of the first, and one for how many more there are."""
    if len(of) > len(lines):
        lines = [*lines, f"... and {len(of) - len(lines):,} more; --json lists all."]
    print("".join(f"{visible(line)}\n" for line in lines), end="", file=stream)


def print_predicted(predicted: "Predicted", as_json: bool, quiet: bool) -> None:
    """The clusters of new images, row by row, unless they are in a folder."""
    skipped, directory = predicted.image_set.skipped, predicted.directory
    if as_json:
        _print_assignments_as_json(predicted)
    elif directory is None:
        print_csv(ASSIGNMENT_COLUMNS, assignment_rows(predicted.assignments))
    else:
        _, clusters, _, rejected, outliers = predicted.assignments
        odd = f"{rejected.sum():,} rejected, " if rejected.any() else ""
        odd += f"{counted(outliers.sum(), 'outlier')}, " if outliers.any() else ""
        _say(f"{counted(len(clusters), 'image')} assigned, {odd}{len(skipped):,} skipped.")
        _show(Assignments=directory.assignments, Report=directory.report)
    if directory is None and not quiet:
        _print_some([f"skipped {file.path}: {file.reason}" for file in skipped[:_SHOWN]], skipped, sys.stderr)


def _print_assignments_as_json(predicted: "Predicted") -> None:
    """One document, written row by row: a million rows as Python objects would take gigabytes."""
    before = '{"assignments": ['
    for path, cluster, confidence, best, outlier in assignment_rows(predicted.assignments):
        row = dict(zip(ASSIGNMENT_COLUMNS, (path, cluster, float(confidence or "nan"), best, outlier)))
        sys.stdout.write(before + json.dumps(row))
        before = ", "
    named = f', "names": {json.dumps(predicted.names)}' if predicted.names else ""
    skipped = json.dumps([row._asdict() for row in predicted.image_set.skipped])
    print(f'], "skipped": {skipped}{named}}}')


def print_shards(summary: "Summary", as_json: bool) -> None:
    """What became of shards; those without a result are refused at the end, as another attempt may do them."""
    missing = summary.missing
    if as_json:
        failed = [{"shard": done.shard, "node": done.node, "reason": done.reason} for done in missing]
        print(json.dumps(asdict(summary) | {"missing": failed}))
    else:
        part = f"{summary.shards - len(missing):,} of {counted(summary.shards, 'shard')}"
        _say(f"{counted(summary.images, 'image')} in {part}, {summary.skipped:,} skipped; see {summary.output}.")
        if summary.passing:
            print(
                f"{summary.passing:,} of these could not be read just now; the same command tries their shards again."
            )
    for done in missing[:1]:
        raise UserError(
            f"{len(missing):,} of {summary.shards:,} shards could not be read; the first, {done.shard} on {done.node}: "
            f"{done.reason} The same command tries them again."
        )


def print_embedded(embedded: "Embedded", as_json: bool) -> None:
    """What was embedded, and where the vectors are."""
    count, size = embedded.features.shape
    if as_json:
        made = {"images": count, "features": size, "encoder": embedded.encoder.identity}
        print(json.dumps(made | {"embedding": str(embedded.directory.embedding)}))
        return
    skipped = len(embedded.image_set.skipped)
    print(f"{counted(count, 'image')}, {size:,} numbers each, by {embedded.encoder.name}; {skipped:,} skipped.")
    _show(Vectors=embedded.directory.embedding, Names=embedded.directory.names)


def print_exported(exported: "Exported", as_json: bool) -> None:
    """What was written, and what could not be."""
    missing, skipped = exported.missing, exported.skipped
    if as_json:
        lists = {name: [row._asdict() for row in getattr(exported, name)] for name in ("skipped", "missing")}
        print(json.dumps(exported._asdict() | {"output": str(exported.output)} | lists))
        return
    odd = f"; {counted(len(skipped), 'file')} skipped by the run, listed apart" if skipped else ""
    _say(f"{counted(exported.images - len(missing), 'image')} as {exported.format}{odd}.")
    if missing:
        _say(f"{counted(len(missing), 'image')} of the run cannot be read any more; missing.csv says why.")
    for note in exported.notes:
        _say(note)
    _show(Output=exported.output)


def print_chosen(chosen: "Chosen", as_json: bool) -> None:
    """The suggested number of clusters, and the score of each that was tried."""
    if as_json:
        print(json.dumps(asdict(chosen.choice)))
        return
    print(f"{chosen.choice.sentence()}\n\n    K  score\n{chosen.choice.curve()}")
    if chosen.directory is not None:
        print()
        _show(Record=chosen.directory.choice)


def print_scores(scores: dict[str, float], as_json: bool) -> None:
    """Scores by name."""
    print(json.dumps(scores) if as_json else "\n".join(f"{name:17s} {value:.4f}" for name, value in scores.items()))


def print_compared(compared: "Compared", as_json: bool) -> None:
    """How far two runs agree; images that moved are listed as far as people read."""
    if as_json:
        rows = {name: [row._asdict() for row in getattr(compared, name)] for name in ("matches", "moved")}
        print(json.dumps(compared._asdict() | rows))
        return
    print(
        f"{counted(compared.images, 'image')} in both; ARI {compared.ari:.4f}, NMI {compared.nmi:.4f} between the runs."
    )
    for name, found in zip(("first", "second"), compared.scores):
        print(f"{name:7s} ACC {found['acc']:.4f}  NMI {found['nmi']:.4f}  ARI {found['ari']:.4f} against the labels")
    print("\nfirst  second  images  shared")
    for first, second, images, shared in compared.matches:
        print(f"{first:5d}  {'-' if second is None else second:>6}  {images:6d}  {shared:6d}")
    are = "is" if len(compared.moved) == 1 else "are"
    print(f"\n{counted(len(compared.moved), 'image')} {are} in another cluster than the match of their first one.")
    for path, first, second in compared.moved[:_MOVED_SHOWN]:
        print(visible(f"moved  {path}: {first} -> {second}"))
    if len(compared.moved) > _MOVED_SHOWN:
        print(f"{len(compared.moved) - _MOVED_SHOWN:,} more; --json has all.")


def print_judged(judged: "Judged", as_json: bool) -> None:
    """Each measure with its value, in words, and what it cannot say."""
    record = judged.judgement
    if as_json:
        print(json.dumps(asdict(record) | {"information": record.information}))
        return
    print(visible(trust(record).headline))
    for name, value, sign, says, cannot in measures(record):
        shown = "-" if value is None else f"{value:.3f}"
        print(visible(f"\n{name:13s} {shown:>6s}  {sign}\n  {says}\n  But: {cannot}", keep="\n"))
    print()
    _show(Record=judged.directory.judgement, Report=judged.directory.report)


def print_probed(probed: "Probed", as_json: bool) -> None:
    """What the probe found out."""
    if as_json:
        print(json.dumps(probed._asdict()))
        return
    print(
        f"Learnt from {counted(probed.train_images, 'image')}; share of {probed.test_images:,} others classified right:"
    )
    print("\n".join(f"{layer:17s} {share:.4f}" for layer, share in probed.accuracy.items()))


def print_reproduced(reproduced: "Reproduced", as_json: bool) -> None:
    """Tables, and where everything is."""
    results, missing = reproduced.results, reproduced.missing
    if as_json:
        made = {name: [str(file) for file in files] for name, files in reproduced.files.items()}
        print(json.dumps({"page": str(results.page), "files": made, "missing": missing}))
        return
    for shown in reproduced.shown.values():
        if isinstance(shown, Rows):
            print_rich(shown, sys.stdout)
            print()
        else:
            print(shown.text())
    for name, reason in missing.items():
        print(visible(f"Missing: {name}. {reason}"))
    if reproduced.shown:
        print(visible(f"All tables and figures: {results.page}"))
    if not reproduced.complete:
        print(visible(f"Not all could be made; {results.failed} says more, --retry-failed makes failed runs again."))


def print_csv(header: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    """Print rows as CSV; names of files may be any bytes, and go out as they came in, except to a terminal."""
    _allow_any_name()
    for line in chain(csv_lines([header]), csv_lines(rows)):
        sys.stdout.write(visible(line[:-1]) + "\n" if sys.stdout.isatty() else line)


def print_table(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows as a table, or as JSON."""
    if as_json:
        print(json.dumps(rows))
        return
    if not rows:
        print("Nothing is there.")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*(str(name) for name in rows[0]), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*("" if value is None else visible(str(value)) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 160).print(table, markup=False, highlight=False)


def print_outcome(outcome: dict[str, Any], sentence: str, as_json: bool) -> None:
    """What was done."""
    print(json.dumps(outcome) if as_json else visible(sentence))


def _say(text: str) -> None:
    """Print a sentence of ours, with names in it."""
    print(visible(text))


def _show(**places: object) -> None:
    """Print where files are, below each other."""
    wide = max(map(len, places)) + 1
    for name, place in places.items():
        print(f"{name + ':':{wide}} {visible(str(place))}")


def _allow_any_name() -> None:
    """Names of files may be any bytes, and go out as they came in."""
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
