"""How sure a run is of its clusters, in numbers, as `result.json` holds it."""

import math
from dataclasses import dataclass, field

from dccm.documents import filled
from dccm.errors import counted

_SHOWN = {"calibration_error", "acc_surest_80"}
"""Scores that stand beside the reliability diagram."""


@dataclass(frozen=True)
class Surety:
    """Confidences of a run, raw and calibrated, and what became of them."""

    temperature: float | None
    """None: the confidences are raw, as there were too few images."""
    agreement: float | None
    """Share of images that others who see less put into the same cluster."""
    mean_raw: float
    mean: float
    reject_below: float | None
    """Confidence below which images were rejected; None: none were to be."""
    rejected: int
    outliers: int
    scores: dict[str, float] = field(default_factory=dict)
    """Against true labels, where they are known."""
    reliability: list[list[float]] = field(default_factory=list)
    """Mean confidence, share of right images and number of images of each bin, where labels are known."""
    reliability_raw: list[list[float]] = field(default_factory=list)
    """The same before the temperature."""

    def sentence(self) -> str:
        """What the summary says of it."""
        kind = "calibrated without labels" if self.temperature is not None else "raw: too few images to calibrate it"
        text = f"Mean confidence {self.mean:.3f} ({kind}); {counted(self.outliers, 'outlier')}."
        if self.reject_below is not None:
            below = "image is" if self.rejected == 1 else "images are"
            text += f" {self.rejected:,} {below} below {self.reject_below:.3f} and without a cluster."
        if "acc_kept" in self.scores:
            text += f" ACC of the kept {self.scores['acc_kept']:.3f}, coverage {self.scores['coverage']:.3f}."
        if "calibration_error" in self.scores:
            error = "calibration_error"
            text += f" Calibration error {self.scores[error]:.3f}, raw {self.scores[error + '_raw']:.3f}."
        return text


def surety_from(stored: object) -> Surety:
    """What `result.json` says; `ValueError` if that makes no sense."""
    surety = filled(Surety, stored)
    bins = [*surety.reliability, *surety.reliability_raw]
    if not all(len(part) == 3 and part[2] >= 1 and all(math.isfinite(value) for value in part) for part in bins):
        raise ValueError("reliability must be a list of three numbers each")
    if bins and not set(surety.scores) >= _SHOWN:
        raise ValueError("reliability needs the scores " + ", ".join(sorted(_SHOWN)))
    return surety
