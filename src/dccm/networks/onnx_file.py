"""Any ONNX file that turns images into vectors.

What the file wants of pixels stands in a JSON file beside it: `model.json` for `model.onnx`, with "mean", "std", "side"
and "interpolation". Without it pixels are in [0, 1], images are enlarged bicubically, and the side is the file's own,
or 224 where it takes any.
"""

import hashlib
import math
from pathlib import Path
from typing import Any

from dccm.documents import UNREADABLE, read_json
from dccm.errors import require
from dccm.networks.feature_encoder import Colour, Preprocessing, identity_of, require_interpolation
from dccm.networks.onnx_encoder import OnnxEncoder, OnnxSession

_USUAL_SIDE, _LARGEST_SIDE = 224, 10_000


def onnx_encoder(path: Path) -> OnnxEncoder:
    """The encoder in an ONNX file.

    Args:
        path: The file; weights outside of its folder are not read.
    """
    require(path.is_file(), f"There is no file {path}. Name an ONNX file, as in onnx:model.onnx.")
    session = OnnxSession(path, f"onnx:{path}")
    preprocessing = _preprocessing(path, session.input.side)
    identity = identity_of(f"onnx:{path.name}", _checksum(path), preprocessing)
    return OnnxEncoder(session.name, identity, session, preprocessing)


def _preprocessing(path: Path, side: int | None) -> Preprocessing:
    """What the JSON file beside an ONNX file says of pixels."""
    beside = path.with_suffix(".json")
    try:
        stated = read_json(beside) if beside.exists() else {}
        chosen = int(stated.pop("side", side or _USUAL_SIDE))
        mean, std = (_colour(stated.pop(key, value)) for key, value in (("mean", 0.0), ("std", 1.0)))
        interpolation = stated.pop("interpolation", "bicubic")
        sound = not stated and 0 < chosen <= _LARGEST_SIDE and min(std) > 0 and all(map(math.isfinite, (*mean, *std)))
    except (*UNREADABLE, AttributeError):
        sound = False
    require(
        sound,
        f'{beside} must be like {{"side": 224, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}} and say how '
        f"{path.name} wants pixels in [0, 1] to be scaled. Correct it.",
    )
    require(side in (None, chosen), f"side in {beside} must be {side}, which {path.name} takes, got {chosen}.")
    require_interpolation(interpolation, str(beside))
    return Preprocessing(chosen, mean, std, interpolation)


def _colour(value: Any) -> Colour:
    red, green, blue = [value] * 3 if isinstance(value, int | float) else value
    return float(red), float(green), float(blue)


def _checksum(path: Path) -> str:
    """Of the file, and of those that exporters put beside it under its name when weights are large."""
    digest = hashlib.blake2b(digest_size=8)
    for part in sorted(other for other in path.parent.iterdir() if other.name.startswith(path.name)):
        with part.open("rb") as file:
            while content := file.read(1 << 20):
                digest.update(content)
    return digest.hexdigest()
