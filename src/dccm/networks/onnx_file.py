"""Any ONNX file that turns images into vectors, run by onnxruntime.

What the file wants of pixels stands in a JSON file beside it: `model.json` for `model.onnx`, with "mean", "std" and
"side". Without it pixels are in [0, 1], and the side is the file's own, or 224 where it takes any.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dccm.arrays import Bytes, Floats
from dccm.errors import UserError, require
from dccm.networks.feature_encoder import Preprocessing, identity_of, require_vectors

EXTRA = "pip install 'dccm[onnx]'"
_USUAL_SIDE = 224


class _Input(NamedTuple):
    """What the file says of the images that it takes."""

    name: str
    channels_last: bool
    batch: int | None
    """Images at once; None: any number."""
    side: int | None


class OnnxEncoder:
    """An encoder in an ONNX file.

    Args:
        path: The file; weights outside of its folder are not read.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"onnx:{path}"
        self.session = _opened(path)
        self.input = _input(self.session, path)
        self.preprocessing = _preprocessing(path, self.input.side)
        self.identity = identity_of(f"onnx:{path.name}", _checksum(path), self.preprocessing)
        side = self.preprocessing.side
        self.feature_size = self(np.zeros((1, side, side, 3), np.uint8)).shape[1]

    def __call__(self, images: Bytes) -> Floats:
        """Vectors of images (B, H, W, C) of any size, grey or colour: (B, D)."""
        _, mean, std = self.preprocessing
        squares = self.preprocessing.colour_squares(images)
        pixels = (squares - np.array(mean, np.float32) * 255) / (np.array(std, np.float32) * 255)
        if not self.input.channels_last:
            pixels = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        return np.concatenate([self._run(part) for part in self._parts(pixels)])

    def _parts(self, pixels: Floats) -> list[Floats]:
        """As many images at once as the file takes; the last ones are repeated where it takes no fewer."""
        if self.input.batch is None:
            return [pixels]
        return [pixels[start : start + self.input.batch] for start in range(0, len(pixels), self.input.batch)]

    def _run(self, pixels: Floats) -> Floats:
        missing = (self.input.batch or len(pixels)) - len(pixels)
        whole = np.concatenate([pixels, pixels[-1:].repeat(missing, axis=0)])
        [made] = self.session.run(None, {self.input.name: whole})
        vectors: Floats = np.asarray(made, dtype=np.float32)[: len(pixels)]
        if vectors.ndim > 2 and vectors.shape[2:] == (1,) * (vectors.ndim - 2):
            vectors = vectors.reshape(vectors.shape[:2])  # Pooled maps keep their two axes.
        require_vectors(self.name, vectors.shape, len(pixels))
        return vectors


def _opened(path: Path) -> Any:
    require(path.is_file(), f"There is no file {path}. Name an ONNX file, as in onnx:model.onnx.")
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(f"The encoder 'onnx:{path}' needs onnxruntime. Get it with: {EXTRA}") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # What is wrong is said once, below.
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # Its exceptions have no common base.
        reason = " ".join(str(error).split())
        if "External data path" in reason:
            raise UserError(
                f"{path} keeps weights outside of its folder, which are not read. Put them beside it."
            ) from error
        raise UserError(f"{path} is no ONNX file that can be run ({reason[:200]}). Export it anew.") from error


def _input(session: Any, path: Path) -> _Input:
    """The one input, if it is images and there is one output."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    require(
        len(inputs) == len(outputs) == 1,
        f"An ONNX encoder must have one input and one output, and {path} has {len(inputs)} and {len(outputs)}. "
        "Export it with its features alone.",
    )
    [entry] = inputs
    shape = list(entry.shape)
    places = [axis for axis in (1, 3) if len(shape) == 4 and shape[axis] == 3]
    require(
        bool(places) and entry.type == "tensor(float)",
        f"An ONNX encoder must take floats (B, 3, H, W) or (B, H, W, 3), and {path} takes {entry.type} {shape}. "
        "Export it so.",
    )
    batch, side = (size if isinstance(size, int) else None for size in (shape[0], shape[2]))
    return _Input(entry.name, places[0] == 3, batch, side)


def _preprocessing(path: Path, side: int | None) -> Preprocessing:
    """What the JSON file beside an ONNX file says of pixels."""
    beside = path.with_suffix(".json")
    try:
        stated = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else {}
        chosen = int(stated.pop("side", side or _USUAL_SIDE))
        wanted = Preprocessing(chosen, _colour(stated.pop("mean", 0.0)), _colour(stated.pop("std", 1.0)))
        sound = not stated and wanted.side > 0 and min(wanted.std) > 0
    except (OSError, ValueError, TypeError, AttributeError):
        sound = False
    require(
        sound,
        f'{beside} must be like {{"side": 224, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}} and say how '
        f"{path.name} wants pixels in [0, 1] to be scaled. Correct it.",
    )
    require(side in (None, chosen), f"side in {beside} must be {side}, which {path.name} takes, got {chosen}.")
    return wanted


def _colour(value: Any) -> tuple[float, float, float]:
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
