"""Find out how sure a run is of its clusters, and with true labels how right it is to be."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.evaluation.calibration import calibration_error, confidence_scores, reliability, right_ones
from dccm.runs.contents import Assignments
from dccm.runs.model import Assigned, Model
from dccm.runs.surety import Surety


def surety_of(model: Model, assigned: Assigned, assignments: Assignments, labels: npt.NDArray[Any] | None) -> Surety:
    """The numbers of a run; labels serve for the scores alone."""
    known = {} if labels is None else _judged(assigned, assignments, labels)
    return Surety(
        temperature=model.confidence.temperature if model.confidence else None,
        agreement=model.confidence.agreement if model.confidence else None,
        mean_raw=float(assigned.raw.mean(dtype=np.float64)),
        mean=float(assigned.confidences.mean(dtype=np.float64)),
        reject_below=model.reject_below,
        rejected=int(assignments.rejected.sum()),
        outliers=int(assignments.outliers.sum()),
        **known,
    )


def _judged(assigned: Assigned, assignments: Assignments, labels: npt.NDArray[Any]) -> dict[str, Any]:
    right = right_ones(labels, assigned.clusters)
    scores = confidence_scores(labels, assigned.clusters, assigned.confidences, assignments.rejected)
    if not scores:
        return {}
    return {
        "scores": scores | {"calibration_error_raw": calibration_error(assigned.raw, right)},
        "reliability": [list(part) for part in reliability(assigned.confidences, right)],
        "reliability_raw": [list(part) for part in reliability(assigned.raw, right)],
    }
