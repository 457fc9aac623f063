"""What a run leaves behind: one folder of plain files, each written whole or not at all."""

import csv
import io
import json
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import Bytes, Floats
from dccm.data.images import Duplicate, ImageSet, Skipped
from dccm.errors import UserError, require
from dccm.files import csv_lines, whole_file, write_atomically

_THUMBNAILS = 24
"""Most confident images of a cluster that the report shows."""
_ROW_GROUP = 16_384


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run, as in `result.json`."""

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
    baseline: dict[str, Any] | None
    """Name and scores of a simple method on the same images."""
    cost: dict[str, float | None]
    """Seconds of training, gradient passes, largest memory."""
    warnings: list[str]
    versions: dict[str, str] = field(default_factory=lambda: versions())

    def summary(self) -> str:
        """The outcome in a few lines."""
        minutes, seconds = divmod(round(self.cost["seconds"] or 0), 60)
        lines = [
            f"{self.n_images:,} images in {self.n_clusters} clusters; {minutes}:{seconds:02d} minutes of training."
        ]
        rows = [(f"{self.method} ({self.preset})", self.scores)]
        rows += [(self.baseline["name"], self.baseline["scores"])] if self.baseline else []
        lines += [f"  {name:20s}  {format_scores(scores)}" for name, scores in rows if scores]
        return "\n".join(lines + [f"Warning: {warning}" for warning in self.warnings])


def format_scores(scores: dict[str, float]) -> str:
    """ACC, NMI and ARI in one line."""
    return "  ".join(f"{name.upper()} {scores[name]:.3f}" for name in ("acc", "nmi", "ari"))


def versions() -> dict[str, str]:
    """Versions of all that a result depends on."""
    packages = {name: metadata.version(name) for name in ("dccm", "torch", "numpy", "scikit-learn", "pillow")}
    return {"python": platform.python_version(), "machine": platform.machine()} | packages


def write_assignments(folder: Path, names: Sequence[str], probabilities: Floats) -> None:
    """Write cluster and confidence of each image as `assignments.csv`, and `.parquet` where pyarrow is installed."""
    clusters, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    rows = ((name, int(cluster), f"{value:.6f}") for name, cluster, value in zip(names, clusters, confidence))
    write_csv(folder / "assignments.csv", ("path", "cluster", "confidence"), rows)
    blocks = (
        {"path": _text(names, rows), "cluster": clusters[rows].astype(np.int64), "confidence": confidence[rows]}
        for rows in _row_groups(len(names))
    )
    write_parquet(folder / "assignments.parquet", blocks)


def write_left_out(folder: Path, found: ImageSet) -> None:
    """Write skipped files with their reason as `skipped.csv`, images that are there twice as `duplicates.csv`."""
    write_csv(folder / "skipped.csv", Skipped._fields, found.skipped)
    write_csv(folder / "duplicates.csv", Duplicate._fields, found.duplicates)


def write_embedding(folder: Path, found: ImageSet, embed: Callable[[Bytes], Floats]) -> None:
    """Write the deep feature of each image as `embedding.parquet`, where pyarrow is installed."""
    blocks = (
        {"path": _text(found.names, rows), "feature": list(embed(found.images[rows]))}
        for rows in _row_groups(len(found.names))
    )
    write_parquet(folder / "embedding.parquet", blocks)


def write_thumbnails(folder: Path, found: ImageSet, probabilities: Floats) -> None:
    """Write the most confident images of each cluster as `thumbnails.npz`; `row` is the line in the assignments."""
    clusters, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    chosen = []
    for cluster in range(probabilities.shape[1]):
        members = np.flatnonzero(clusters == cluster)
        chosen.append(members[np.argsort(-confidence[members], kind="stable")[:_THUMBNAILS]])
    rows = np.concatenate(chosen)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, images=found.images[rows], row=rows)
    write_atomically(folder / "thumbnails.npz", buffer.getvalue())


def write_history(folder: Path, history: list[dict[str, Any]]) -> None:
    """Write one line of JSON for each epoch as `history.jsonl`."""
    write_atomically(folder / "history.jsonl", "".join(json.dumps(record) + "\n" for record in history))


def write_result(folder: Path, result: RunResult) -> None:
    """Write `result.json`."""
    write_atomically(folder / "result.json", json.dumps(asdict(result), indent=1) + "\n")


def read_assignments(folder: Path) -> tuple[list[str], np.ndarray]:
    """Names and clusters of `assignments.csv`."""
    path = folder / "assignments.csv"
    require(path.is_file(), f"{folder} holds no assignments.csv. Give the output folder of dccm cluster or predict.")
    try:
        rows = read_csv(path)
        return [row["path"] for row in rows], np.array([int(row["cluster"]) for row in rows])
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise UserError(f"{path} is damaged: it must have the columns path and cluster. Run dccm again.") from error


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file by column name; names of files may be any bytes."""
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, header: tuple[str, ...], rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV; names of files may hold commas, quotes, newlines or bytes that are no text."""
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")
        text.writelines(csv_lines(chain([header], rows)))
        text.flush()
        text.detach()


def parquet_available() -> bool:
    """Whether pyarrow, of the extra `dccm[data]`, is installed."""
    return find_spec("pyarrow") is not None


def write_parquet(path: Path, blocks: Iterable[dict[str, Any]]) -> None:
    """Write blocks of columns as parquet, if pyarrow is installed; the command line says so when it is not."""
    if not parquet_available():
        return
    import pyarrow
    import pyarrow.parquet

    with whole_file(path) as file:
        writer = None
        for block in blocks:
            table = pyarrow.table(block)
            writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _row_groups(count: int) -> Iterator[slice]:
    """Rows that are written together, so that memory does not grow with the number of images."""
    return (slice(start, min(start + _ROW_GROUP, count)) for start in range(0, count, _ROW_GROUP))


def _text(names: Sequence[str], rows: slice) -> list[str]:
    """Names that are text: parquet has no place for other bytes."""
    chosen = (names[row] for row in range(rows.start, rows.stop))
    return [name.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace") for name in chosen]
