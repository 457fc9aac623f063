"""What is kept of an image in the cache: a vector, or a map where the last blocks of the encoder are trained."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import Floats, Halves
from dccm.errors import require
from dccm.files import amount
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.map_encoder import MapEncoder


def row_description(encoder: FeatureEncoder) -> dict[str, Any]:
    """What an encoder makes of an image, as the manifest has it."""
    if isinstance(encoder, MapEncoder):
        return {"features": list(encoder.map_shape), "finetune": encoder.blocks}
    return {"features": encoder.feature_size}


def row_shape(wanted: dict[str, Any]) -> tuple[int, ...]:
    """Shape of a vector, (D,), or of a map, (h, w, c)."""
    row = wanted["features"]
    return tuple(row) if isinstance(row, list) else (row,)


def row_bytes(wanted: dict[str, Any], count: int) -> int:
    """Of so many vectors or maps in half precision."""
    return count * 2 * math.prod(row_shape(wanted))


def half_maps(maps: Floats) -> Halves:
    """Maps in half precision; what is too large for it becomes infinite."""
    with np.errstate(over="ignore"):
        return maps.astype(np.float16)


def announce(folder: Path, wanted: dict[str, Any], left: int, say: Callable[[str], None]) -> None:
    """Maps are large: say how large before they are computed, or refuse them.

    Args:
        folder: Where they go.
        wanted: As the manifest has it.
        left: Images that are not computed yet.
        say: Called with the sentence.
    """
    if "finetune" not in wanted:
        return
    needed, free = row_bytes(wanted, left), shutil.disk_usage(folder).free
    text = f"The maps before the trained blocks need {amount(needed)} in {folder}"
    require(
        free > needed,
        f"{text}, and {amount(free)} are free. Free some space, choose another cache folder, or set finetune = 0.",
    )
    say(f"{text}.")
