"""Which images are shown, and in which order."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats
from dccm.corrections.change import MARKS
from dccm.corrections.state import State
from dccm.errors import choose, require

Order = Literal["sure", "unsure", "path", "similar"]


@dataclass(frozen=True)
class Wanted:
    """What is asked for; None: whatever it is."""

    cluster: int | None = None
    text: str = ""
    low: float = 0.0
    """Confidence at least; images without one are there if this is 0."""
    high: float = 1.0
    mark: str | None = None
    order: Order = "sure"

    def __post_init__(self) -> None:
        choose(self.order, get_args(Order), "order", "docs/gallery.md")
        require(
            self.mark is None or self.mark in MARKS, f"mark must be one of {', '.join(MARKS[1:])}, got {self.mark}."
        )


def chosen(
    wanted: Wanted,
    state: State,
    confidences: npt.NDArray[np.floating],
    holding: npt.NDArray[np.bool_] | None = None,
    distances: Floats | None = None,
) -> npt.NDArray[np.int64]:
    """Rows of the images that are wanted, in their order.

    Args:
        wanted: What is asked for.
        state: Where each image is.
        confidences: Of each image, (N,).
        holding: Whether the text is in its path, (N,); None: there is no text.
        distances: What similar images are near to, (N,); None: they are in no such order.
    """
    known = np.nan_to_num(confidences, nan=0.0)
    keep = (known >= wanted.low) & (known <= wanted.high)
    if wanted.cluster is not None:
        keep &= state.clusters == wanted.cluster
    if wanted.mark is not None:
        keep &= state.marks == MARKS.index(wanted.mark)
    if holding is not None:
        keep &= holding
    rows = np.flatnonzero(keep)
    if wanted.order == "path" or (wanted.order == "similar" and distances is None):
        return rows
    keys = distances[rows] if wanted.order == "similar" and distances is not None else known[rows]
    ordered: npt.NDArray[np.int64] = rows[np.argsort(-keys if wanted.order == "sure" else keys, kind="stable")]
    return ordered
