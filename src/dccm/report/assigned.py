"""The page of new images that a model assigned: each cluster with its surest and least sure of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.data.images import ImageSet
from dccm.files import write_atomically
from dccm.report import plots
from dccm.report.pictures import Thumbnail, image_uri
from dccm.report.templates import fill
from dccm.runs.contents import Assignments
from dccm.runs.directory import RunDirectory

_SUREST, _LEAST_SURE, _OUTLIERS = 16, 8, 24
"""Images that are shown of each cluster, and of those far from all others."""
_SKIPPED_SHOWN = 50
_MANY_THUMBNAILS, _MOST_THUMBNAILS = 1500, 6000
"""From here on thumbnails are made smaller; no more are shown than would be a page of a few megabytes."""


@dataclass(frozen=True)
class Training:
    """What is known of the images that the model learnt from."""

    sizes: Mapping[int, int] = field(default_factory=dict)
    """Images of each cluster, as corrected by now; none: nobody knows."""
    mean_confidence: float = math.nan
    unknown: str = ""
    """Why nothing is known."""


class Sheet(NamedTuple):
    """What the page says of one cluster."""

    number: int
    name: str
    size: int
    share: float
    training_share: float
    """Not a number where that is not known."""
    mean_confidence: float
    rejected: int
    surest: list[Thumbnail]
    least_sure: list[Thumbnail]


def write_assigned(
    directory: RunDirectory,
    assignments: Assignments,
    image_set: ImageSet,
    names: Mapping[int, str],
    training: Training,
    model: str | Path,
) -> Path:
    """Write `report.html` beside the assignments of new images.

    Args:
        directory: Where they are.
        assignments: Cluster and confidence of each image.
        image_set: The images, and what was skipped.
        names: Of clusters that people gave one.
        training: What is known of the images that the model learnt from.
        model: Which model assigned them.
    """
    text = fill(
        "assigned.html.jinja",
        sheets=_sheets(assignments, image_set.images, names, training),
        outliers=_thumbnails(np.flatnonzero(assignments.outliers)[:_OUTLIERS], assignments, image_set.images),
        histogram=plots.histogram(assignments.confidences.tolist(), title="Confidence of the images"),
        mean_confidence=mean_of(assignments.confidences),
        n_images=len(assignments.paths),
        n_outliers=int(assignments.outliers.sum()),
        n_rejected=int(assignments.rejected.sum()),
        pixelated=max(image_set.images.shape[1:3]) <= 32,
        skipped=list(image_set.skipped[:_SKIPPED_SHOWN]),
        n_skipped=len(image_set.skipped),
        training=training,
        model=str(model),
    )
    write_atomically(directory.report, text)
    return directory.report


def _sheets(assignments: Assignments, images: Bytes, names: Mapping[int, str], training: Training) -> list[Sheet]:
    """One for each cluster that is known, the largest first."""
    rows = _by_cluster(assignments)
    numbers = sorted(set(rows) | set(training.sizes))
    many = len(numbers) * (_SUREST + _LEAST_SURE) > _MANY_THUMBNAILS
    share = min(1.0, _MOST_THUMBNAILS / (len(numbers) * (_SUREST + _LEAST_SURE)))
    surest, least_sure = max(1, int(share * _SUREST)), int(share * _LEAST_SURE)
    known = sum(training.sizes.values())
    sheets = []
    for number in numbers:
        own = rows.get(number, np.empty(0, np.int64))
        shown = own[~assignments.outliers[own]]  # The others have a place of their own.
        sheets.append(
            Sheet(
                number,
                names.get(number, ""),
                len(own),
                len(own) / len(assignments.paths),
                training.sizes.get(number, 0) / known if known else math.nan,
                mean_of(assignments.confidences[own]),
                int(assignments.rejected[own].sum()),
                _thumbnails(shown[:surest], assignments, images, many=many),
                _thumbnails(shown[surest:][-least_sure:] if least_sure else shown[:0], assignments, images, many=many),
            )
        )
    return sorted(sheets, key=lambda sheet: -sheet.size)


def _by_cluster(assignments: Assignments) -> dict[int, npt.NDArray[np.int64]]:
    """The rows of each cluster, the surest first."""
    order = np.lexsort((-assignments.confidences, assignments.clusters))
    numbers, starts = np.unique(assignments.clusters[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, starts[1:])))


def _thumbnails(
    rows: npt.NDArray[np.int64], assignments: Assignments, images: Bytes, *, many: bool = False
) -> list[Thumbnail]:
    return [
        Thumbnail(image_uri(images[row], many=many), assignments.paths[row], float(assignments.confidences[row]))
        for row in rows.tolist()
    ]


def mean_of(confidences: npt.NDArray[np.floating]) -> float:
    """Mean of those that are known; not a number if none is."""
    known = confidences[np.isfinite(confidences)]
    return float(known.mean()) if len(known) else math.nan
