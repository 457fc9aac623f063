"""What `model.json` says of a model: written by `Model.save`, and read with suspicion, as models may be strangers'."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dccm.arrays import ImageShape
from dccm.documents import UNREADABLE, check, filled, read_json
from dccm.errors import UserError, require
from dccm.files import write_atomically
from dccm.runs.confidence import Confidence
from dccm.runs.features import Pretrained

FORMAT = "dccm-model"
VERSION = 1
_LONGEST_SIDE = 100_000
"""Of an image that a model takes, and length of a vector in its place."""


class RowScale(NamedTuple):
    """How rows of numbers become images."""

    features: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Description:
    """All of a model but its weights; what older versions lack has a default."""

    format: str = FORMAT
    version: int = VERSION
    method: str
    preset: str
    dataset: str
    image_shape: ImageShape
    settings: dict[str, Any]
    rows: RowScale | None = None
    pretrained: Pretrained | None = None
    confidence: Confidence | None = None
    """None: confidences are raw."""
    reject_below: float | None = None

    def __post_init__(self) -> None:
        sides = [*self.image_shape, *(self.pretrained.image_shape if self.pretrained else ())]
        check(all(1 <= side <= _LONGEST_SIDE for side in sides), f"image_shape must lie in 1 to {_LONGEST_SIDE:,}")
        temperature = self.confidence.temperature if self.confidence else 1.0
        check(0 < temperature < math.inf, "confidence must have a temperature above 0")
        numbers = [self.reject_below or 0.0, *(self.rows or ()), *(self.confidence or ())]
        check(all(map(math.isfinite, numbers)), "a number is not finite")


def write_description(path: Path, description: Description) -> None:
    """Write a `model.json`."""
    stored = asdict(description)
    for name in ("image_shape", "rows", "pretrained", "confidence"):
        part = getattr(description, name)
        stored[name] = part and part._asdict()
    write_atomically(path, json.dumps(stored, indent=1) + "\n")


def read_description(path: Path) -> Description:
    """Read and check a `model.json`."""
    require(path.is_file(), f"There is no model in {path.parent}: model.json is missing. Give a run or model folder.")
    try:
        document = read_json(path)
        known = document["format"] == FORMAT
        version = int(document["version"])
    except UNREADABLE as error:
        raise _foreign(path) from error
    if not known:
        raise _foreign(path)
    require(
        version <= VERSION,
        f"{path} has format version {version}, and this dccm reads up to {VERSION}. Update dccm to load it.",
    )
    try:
        return filled(Description, document)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}. Take a sound copy.") from error


def _foreign(path: Path) -> UserError:
    return UserError(f"{path} is not a model description of dccm. Take it from a run or from DCCM.save.")
