"""All that the page needs of a run directory, read once."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dccm.data.images import Duplicate, Skipped
from dccm.evaluation.labels import read_labels
from dccm.report.groups import Group, grouped
from dccm.runs.choice import Choice, read_choice
from dccm.runs.contents import Assignments, Record, Thumbnails
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import Judgement, read_judgement
from dccm.runs.result import RunResult


@dataclass(frozen=True)
class RunFiles:
    """What a run directory holds. Clusters are places in `groups`, from 0 up."""

    result: RunResult
    history: list[Record]
    assignments: Assignments
    thumbnails: Thumbnails
    skipped: list[Skipped]
    groups: list[Group]
    """The clusters, as people corrected them."""
    changes: int = 0
    """Corrections that people made."""
    choice: Choice | None = None
    embedding: NDArray[np.float32] | None = None
    judgement: Judgement | None = None
    on_map: Thumbnails | None = None
    duplicates: list[Duplicate] = field(default_factory=list)
    near_duplicates: list[Duplicate] = field(default_factory=list)
    labels: NDArray[Any] | None = None


def gather(directory: RunDirectory, labels: Path | None = None) -> RunFiles:
    """Read the files of a finished run; a missing or broken one is named in one sentence.

    Args:
        directory: The run.
        labels: True labels, as for `evaluate`; None: those that the run itself knew.
    """
    directory.require()
    result = directory.read_result()
    assignments = directory.read_assignments(result)
    clusters, groups, changes = grouped(directory, assignments, result.n_clusters)
    return RunFiles(
        result=result,
        history=directory.read_history(),
        assignments=assignments._replace(clusters=clusters),
        thumbnails=directory.read_thumbnails(result.n_images),
        skipped=directory.read_skipped(),
        groups=groups,
        changes=changes,
        choice=read_choice(directory.choice),
        embedding=_embedding(directory, result),
        judgement=read_judgement(directory.judgement),
        on_map=directory.read_thumbnails(result.n_images, of_map=True) if directory.map_thumbnails.exists() else None,
        duplicates=directory.read_duplicates(),
        near_duplicates=directory.read_duplicates(near=True),
        labels=_labels(directory, assignments, labels),
    )


def _embedding(directory: RunDirectory, result: RunResult) -> NDArray[np.float32] | None:
    """The feature of each image; None where a run kept none, or one that is not of these images."""
    if not directory.embedding.is_file():
        return None
    features = directory.read_embedding()
    return features if len(features) == result.n_images and features.shape[1] else None


def _labels(directory: RunDirectory, assignments: Assignments, given: Path | None) -> NDArray[Any] | None:
    path = given or directory.labels
    if given is None and not path.exists():
        return None
    return read_labels(path, assignments.paths, directory.source_folder() if given else None)
