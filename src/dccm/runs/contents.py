"""What the files of a run directory hold."""

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.config import Section, Settings, to_toml
from dccm.documents import check, filled, parse_toml

RUN_FORMAT = 1
"""Of the files of a run directory; it grows when an older program would misread them."""
Record = dict[str, Any]
"""An epoch in the history."""
ASSIGNMENT_COLUMNS = ("path", "cluster", "confidence", "best", "outlier")
FIRST_COLUMNS = ASSIGNMENT_COLUMNS[:3]
"""Those that files of older versions have."""
NO_CLUSTER = -1
"""Stands in files in the place of the cluster of an image that was rejected."""


class Assignments(NamedTuple):
    """One entry per image."""

    paths: Sequence[str]
    clusters: npt.NDArray[np.int64]
    """The best cluster, also of an image that was rejected."""
    confidences: npt.NDArray[np.floating[Any]]
    """From 0 to 1; not a number where a method gives none."""
    rejected: npt.NDArray[np.bool_]
    """Whether it is too unsure for any cluster."""
    outliers: npt.NDArray[np.bool_]
    """Whether it is far from all other images."""


class Thumbnails(NamedTuple):
    """Copies of the most confident images."""

    images: Bytes
    """(M, H, W, C)"""
    row: npt.NDArray[np.int64]
    """Row of each in the assignments, (M,)."""


@dataclass(frozen=True)
class Begun:
    """What a run was begun with: the table `[run]` of `config.toml`."""

    method: str
    preset: str
    dataset: str
    images: int
    checksum: str
    """Of the pixels."""
    format: int = RUN_FORMAT
    improved_from: str = ""
    """Folder of the run that this one goes on from; empty: it goes on from none."""
    changes: int = 0
    """Number of the last correction of that run that is learnt from."""

    def __post_init__(self) -> None:
        check(
            1 <= self.format <= RUN_FORMAT,
            f"its format is {self.format}, and this dccm reads up to {RUN_FORMAT}: a later one wrote it. Update dccm",
        )


_OF_IMPROVED = ("improved_from", "changes")


class StoredConfig(NamedTuple):
    """What `config.toml` holds."""

    begun: Begun
    settings: Settings


@dataclass(frozen=True)
class StoredSource:
    """Where the images of a run came from, as `source.json` holds it."""

    kind: str
    place: str
    """Empty: they were in memory only."""
    key: str
    """Folder of the prepared images in the cache; empty: they were not prepared."""
    images: int
    shape: tuple[int, int, int]
    """Height, width and channels."""
    checksum: str
    """Of the pixels."""


def config_text(begun: Begun, sections: Sequence[Section]) -> str:
    """The text of `config.toml`."""
    said = {name: value for name, value in asdict(begun).items() if begun.improved_from or name not in _OF_IMPROVED}
    lines = [f"{name} = {json.dumps(value)}" for name, value in said.items()]
    return "\n".join(["[run]", *lines, "", "[settings]", to_toml(sections)])


def parse_config(text: str) -> StoredConfig:
    """What a text of `config.toml` says."""
    content = parse_toml(text)
    for name in ("run", "settings"):
        if not isinstance(content.get(name), dict):
            raise ValueError(f"it has no table [{name}]")
    return StoredConfig(filled(Begun, content["run"]), content["settings"])


def checked_history(records: list[Any]) -> list[Record]:
    """The records, if each is of an epoch."""
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict) or type(record.get("epoch")) is not int:
            raise ValueError(f"record {number} has no epoch")
        if not isinstance(record.get("warnings", []), list):
            raise ValueError(f"the warnings of record {number} are no list")
    return records


def assignment_rows(assignments: Assignments) -> Iterator[tuple[str, int, str, int, int]]:
    """The rows of `assignments.csv`, one by one."""
    for path, best, confidence, rejected, outlier in zip(*assignments):
        cluster = NO_CLUSTER if rejected else int(best)
        yield path, cluster, "" if np.isnan(confidence) else f"{confidence:.6f}", int(best), int(outlier)


def assignment_columns(assignments: Assignments, rows: slice) -> dict[str, Any]:
    """Some rows as columns, without the paths."""
    best, outliers = assignments.clusters[rows], assignments.outliers[rows].astype(np.int64)
    clusters = np.where(assignments.rejected[rows], NO_CLUSTER, best)
    return dict(zip(ASSIGNMENT_COLUMNS[1:], (clusters, assignments.confidences[rows], best, outliers)))


class ColumnReader:
    """Gathers the rows of `assignments.csv` in a few bytes each; millions of rows are never in memory as such."""

    def __init__(self) -> None:
        self.best, self.confidences = array("q"), array("d")
        self.rejected, self.outliers = array("b"), array("b")

    def paths(self, rows: Iterator[dict[str, str]]) -> Iterator[str]:
        """The paths of the rows, one by one; all else is noted."""
        for row in rows:
            cluster = int(row["cluster"])
            self.best.append(int(row.get("best", cluster)))
            self.confidences.append(float(row["confidence"] or "nan"))
            self.rejected.append(cluster == NO_CLUSTER)
            self.outliers.append(int(row.get("outlier", 0)))
            yield row["path"]

    def assignments(self, paths: Sequence[str]) -> Assignments:
        """All that was noted."""
        return Assignments(
            paths,
            np.array(self.best, dtype=np.int64),
            np.array(self.confidences).clip(0, 1),
            np.array(self.rejected, dtype=bool),
            np.array(self.outliers, dtype=bool),
        )
