"""What a run leaves behind: one folder of plain files, each written whole or not at all."""

import csv
import io
import json
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dccm.data.images import ImageSet, Skipped
from dccm.errors import UserError, require
from dccm.files import write_atomically
from dccm.model import Floats

_THUMBNAILS = 24
"""Most confident images of a cluster that the report shows."""


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run, as in `result.json`."""

    method: str
    preset: str
    dataset: str | None
    n_images: int
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


def write_assignments(folder: Path, names: list[str], probabilities: Floats) -> None:
    """Write cluster and confidence of each image as `assignments.csv`, and `.parquet` where pyarrow is installed."""
    clusters, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    rows = zip(names, clusters.tolist(), (f"{value:.6f}" for value in confidence))
    write_csv(folder / "assignments.csv", ("path", "cluster", "confidence"), rows)
    write_parquet(
        folder / "assignments.parquet",
        {"path": _text(names), "cluster": clusters.astype(np.int64), "confidence": confidence},
    )


def write_skipped(folder: Path, skipped: list[Skipped]) -> None:
    """Write which files were left out, and why, as `skipped.csv`."""
    write_csv(folder / "skipped.csv", ("path", "reason"), skipped)


def write_embedding(folder: Path, names: list[str], features: Floats) -> None:
    """Write the deep feature of each image as `embedding.parquet`, where pyarrow is installed."""
    write_parquet(folder / "embedding.parquet", {"path": _text(names), "feature": list(features)})


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


def write_csv(path: Path, header: tuple[str, ...], rows: Any) -> None:
    """Write rows as CSV; names of files may hold commas, quotes, newlines or bytes that are no text."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_atomically(path, buffer.getvalue().encode("utf-8", errors="surrogateescape"))


def parquet_available() -> bool:
    """Whether pyarrow, of the extra `dccm[data]`, is installed."""
    return find_spec("pyarrow") is not None


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """Write columns as parquet, if pyarrow is installed; the command line says so when it is not."""
    if not parquet_available():
        return
    import pyarrow
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    write_atomically(path, buffer.getvalue())


def _text(names: list[str]) -> list[str]:
    """Names that are text: parquet has no place for other bytes."""
    return [name.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace") for name in names]
