"""What formats are given: the rows of a run as corrected, its images, and what the user asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats
from dccm.corrections.change import MARKS
from dccm.corrections.of_run import corrected
from dccm.corrections.state import State
from dccm.data.passing import require_means
from dccm.errors import UserError, require
from dccm.exporting.originals import Originals
from dccm.files import read_csv
from dccm.runs.contents import NO_CLUSTER, Assignments
from dccm.runs.directory import RunDirectory
from dccm.training.progress import OnProgress, ignore

COLUMNS = ("path", "cluster", "name", "confidence", "corrected", "outlier", "wrong")
"""Of each row, and `label` where labels are known."""

Label = str | int | None
"""A true class; None: that of this image is not known."""
Flags = npt.NDArray[np.bool_]


class Missing(NamedTuple):
    """An image of the run that cannot be read any more."""

    path: str
    reason: str


@dataclass(frozen=True)
class Rows:
    """One entry per image, in the order of the assignments."""

    paths: Sequence[str]
    clusters: npt.NDArray[np.int64]
    """As corrected; `NO_CLUSTER` for those that were rejected."""
    predicted: npt.NDArray[np.int64]
    """What the model said, before anybody corrected it or an image was rejected."""
    names: dict[int, str]
    """Of clusters that people gave one."""
    confidences: npt.NDArray[np.floating[Any]]
    """Of the model, in its own cluster; not a number where a method gives none."""
    corrected: Flags
    """Whether it is in another cluster than the run put it, or a person put it there."""
    outliers: Flags
    wrong: Flags
    """Whether a person said that it does not belong to its cluster."""
    labels: Sequence[Label] | None
    """True classes, where they are known."""
    embedding: Floats | None
    """Deep features, (N, D), mapped from the file; None: there are none, or they are not wanted."""

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what `values` gives."""
        return (*COLUMNS, "label") if self.labels is not None else COLUMNS

    def values(self, row: int) -> dict[str, Any]:
        """What is known of one image, as plain numbers and text."""
        cluster, confidence = int(self.clusters[row]), float(self.confidences[row])
        known = {
            "path": self.paths[row],
            "cluster": cluster,
            "name": self.names.get(cluster, ""),
            "confidence": None if np.isnan(confidence) else confidence,
            "corrected": bool(self.corrected[row]),
            "outlier": bool(self.outliers[row]),
            "wrong": bool(self.wrong[row]),
        }
        return known if self.labels is None else known | {"label": self.labels[row]}

    def feature(self, row: int) -> list[float]:
        """The embedding of one image."""
        assert self.embedding is not None
        values: list[float] = self.embedding[row].tolist()
        return values


@dataclass(frozen=True)
class Content:
    """All that a format may write."""

    directory: RunDirectory
    rows: Rows
    originals: Originals
    plain: bool = False
    """Whether text stands as it is also where a spreadsheet would take it for a formula."""
    on_progress: OnProgress = ignore
    missing: list[Missing] = field(default_factory=list)
    """Filled while images are written."""

    def note_missing(self, row: int, error: Exception) -> None:
        """An image cannot be read; what the whole process lacks ends it."""
        require_means(error)
        reason = str(getattr(error, "strerror", None) or error) or type(error).__name__
        self.missing.append(Missing(self.rows.paths[row], reason))


def rows_of(
    directory: RunDirectory, assignments: Assignments, *, labels: Sequence[Label] | None, embedding: bool
) -> Rows:
    """The rows of a finished run, or of what `dccm predict` wrote, which follows corrections already."""
    finished = directory.result.is_file()
    n_clusters = directory.read_result().n_clusters if finished else int(assignments.clusters.max()) + 1
    first = State.of_run(assignments, n_clusters)
    state = corrected(directory, assignments, n_clusters) if finished else first
    names = state.groups.names if finished else _stored_names(directory)
    return Rows(
        paths=assignments.paths,
        clusters=state.clusters,
        predicted=assignments.clusters,
        names=dict(names),
        confidences=assignments.confidences,
        corrected=(state.clusters != first.clusters) | state.placed,
        outliers=state.marks == MARKS.index("outlier"),
        wrong=state.marks == MARKS.index("wrong"),
        labels=labels,
        embedding=_embedding(directory, len(assignments.paths)) if embedding else None,
    )


def assignments_of(directory: RunDirectory) -> Assignments:
    """The assignments of a finished run, or of what `dccm predict` wrote; a run that is not finished is refused."""
    directory.require()
    require(
        not directory.holds_run or directory.result.is_file(),
        f"The run in {directory.path} is not finished: result.json is missing. Finish it with dccm cluster and "
        "--resume, then export it.",
    )
    return directory.read_assignments(directory.read_result() if directory.result.is_file() else None)


def _stored_names(directory: RunDirectory) -> dict[int, str]:
    if not directory.cluster_names.is_file():
        return {}
    try:
        rows = read_csv(directory.cluster_names, ("cluster", "name"), "take a sound copy", exactly=True)
        return {int(row["cluster"]): row["name"] for row in rows}
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{directory.cluster_names} is broken ({error}); take a sound copy.") from error


def _embedding(directory: RunDirectory, count: int) -> Floats | None:
    if not directory.embedding.is_file():
        return None
    features = directory.read_embedding()
    require(
        len(features) == count,
        f"{directory.embedding} is of {len(features):,} images, and the run of {count:,}. Take a sound copy, or leave "
        "it out with --no-embedding.",
    )
    return features


def class_names(rows: Rows) -> dict[int, str]:
    """A name for every cluster that holds images: the one that people gave it, or one made of its number."""
    numbers = [int(number) for number in np.unique(rows.clusters)]
    wide = len(str(max(numbers, default=0)))
    return {number: rows.names.get(number) or _numbered(number, wide) for number in numbers}


def _numbered(number: int, wide: int) -> str:
    return "no-cluster" if number == NO_CLUSTER else f"cluster-{number:0{wide}d}"
