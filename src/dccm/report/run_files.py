"""Read and check the files of a run directory."""

import csv
import json
import math
import zipfile
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dccm.data.names import Names
from dccm.errors import UserError, require

_UNREADABLE = (
    *(OSError, ValueError, TypeError, KeyError, EOFError, OverflowError),
    *(csv.Error, zipfile.BadZipFile, zlib.error),
)
"""What the readers of JSON, CSV and npz files raise when the content is not theirs."""


Record = dict[str, Any]


class Assignments(NamedTuple):
    """One entry per image, in the order of assignments.csv."""

    paths: Names
    clusters: NDArray[np.int64]
    confidences: NDArray[np.float64]
    """From 0 to 1; not a number where a method gives none."""


class Thumbnails(NamedTuple):
    """Small copies of the most confident images."""

    images: NDArray[np.uint8]
    """(M, H, W, C)"""
    row: NDArray[np.int64]
    """Row of each in assignments.csv, (M,)."""


class Skipped(NamedTuple):
    """A file that could not be clustered."""

    path: str
    reason: str


@dataclass(frozen=True)
class RunFiles:
    """All that the report needs of a run directory."""

    result: Record
    history: list[Record]
    assignments: Assignments
    thumbnails: Thumbnails
    skipped: list[Skipped]


def gather(run: Path) -> RunFiles:
    """Read and check the files of a run directory; a missing or broken one is named in one sentence."""
    require(run.is_dir(), f'There is no run directory {run}; "dccm cluster" writes one.')
    result = _read_result(run / "result.json")
    assignments = _read_assignments(run / "assignments.csv", result)
    return RunFiles(
        result=result,
        history=_read_history(run / "history.jsonl"),
        assignments=assignments,
        thumbnails=_read_thumbnails(run / "thumbnails.npz", len(assignments.paths)),
        skipped=_read_skipped(run / "skipped.csv"),
    )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one sentence that names it."""
    require(path.is_file(), f'There is no {path.name} in {path.parent}; "dccm cluster" writes a run directory.')
    try:
        yield
    except UserError:
        raise
    except _UNREADABLE as error:
        reason = f"{error}".replace("\n", " ") or type(error).__name__
        raise _broken(path, reason) from error


def _broken(path: Path, reason: str) -> UserError:
    return UserError(f'{path} is broken ({reason}); write the run directory anew with "dccm cluster".')


def _check(condition: bool, path: Path, reason: str) -> None:
    if not condition:
        raise _broken(path, reason)


def _read_result(path: Path) -> Record:
    with _reading(path):
        result: Record = json.loads(path.read_text("utf-8"))
        _check(isinstance(result, dict), path, "not a JSON object")
        for name in ("n_images", "n_clusters"):
            value = result.get(name)
            _check(
                isinstance(value, int) and value >= 1, path, f"{name} must be a whole number from 1 up, got {value!r}"
            )
        for name in ("scores", "baseline", "cost", "versions"):
            _check(isinstance(result.get(name) or {}, dict), path, f"{name} must be an object")
        theirs = (result.get("baseline") or {}).get("scores") or {}
        _check(isinstance(theirs, dict), path, "the baseline's scores must be an object")
        _check(isinstance(result.get("warnings") or [], list), path, "warnings must be a list")
        return dict.fromkeys(("method", "preset", "dataset", "seed", "n_duplicates")) | result


def _read_history(path: Path) -> list[Record]:
    with _reading(path):
        records = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
        for number, record in enumerate(records, start=1):
            sound = isinstance(record, dict) and math.isfinite(number_of(record.get("epoch")))
            _check(sound, path, f"record {number} has no epoch")
        return records


def _read_assignments(path: Path, result: Record) -> Assignments:
    with _reading(path):
        clusters, confidences = array("q"), array("d")
        paths = Names(_noted(_csv_rows(path, ["path", "cluster", "confidence"]), clusters, confidences))
        expected, count = result["n_images"], result["n_clusters"]
        _check(len(paths) == expected, path, f"{len(paths)} images, but result.json counts {expected}")
        found = np.array(clusters, dtype=np.int64)
        inside = bool(((found >= 0) & (found < count)).all())
        _check(inside, path, f"a cluster number outside 0 to {count - 1}")
        return Assignments(paths, found, np.array(confidences).clip(0, 1))


def _noted(rows: Iterator[list[str]], clusters: "array[int]", confidences: "array[float]") -> Iterator[str]:
    """The paths of the rows, one by one; millions of rows are never in memory as such."""
    for path, cluster, confidence in rows:
        clusters.append(int(cluster))
        confidences.append(float(confidence or "nan"))
        yield path


def _read_thumbnails(path: Path, n_images: int) -> Thumbnails:
    with _reading(path), np.load(path, allow_pickle=False) as arrays:
        images, row = arrays["images"], arrays["row"]
        shaped = images.dtype == np.uint8 and images.ndim == 4 and 0 not in images.shape[1:]
        _check(shaped, path, f"images must be uint8 (M, H, W, C), got {images.dtype} {images.shape}")
        fitting = row.shape == images.shape[:1] and row.dtype.kind in "iu"
        _check(fitting, path, "row must give one whole number for each image")
        _check(bool(((row >= 0) & (row < n_images)).all()), path, "a row that assignments.csv does not have")
        return Thumbnails(images, row.astype(np.int64))


def _read_skipped(path: Path) -> list[Skipped]:
    if not path.exists():
        return []
    with _reading(path):
        return [Skipped(*row) for row in _csv_rows(path, ["path", "reason"])]


def _csv_rows(path: Path, header: list[str]) -> Iterator[list[str]]:
    # File names need not be valid UTF-8, and "replace" still shows the rest of the name.
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, strict=True)
        _check(next(reader, None) == header, path, f"its first line is not {','.join(header)}")
        for row in reader:
            if row:  # An empty line is no row.
                _check(len(row) == len(header), path, f"a line without exactly {len(header)} values")
                yield row


def number_of(value: object) -> float:
    """The value as a float; not a number when it is anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
