"""Encoders that onnxruntime computes on the CPU.

A batch is cut into pieces. Each piece is brought to the encoder's side, scaled and computed in one thread, while the
other threads do the same with theirs: no thread waits for another in the middle of the network, none spins, and
enlarging images costs no time in which the network could run. docs/lab/features.md has what was measured.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dccm.arrays import Bytes, Floats
from dccm.errors import UserError, require
from dccm.networks.encoders import ONNX_EXTRA
from dccm.networks.feature_encoder import Preprocessing, require_vectors

_PIECE = 4
"""Images that a thread computes at once: their maps fit its cache."""


class OnnxInput(NamedTuple):
    """What a network says of the images that it takes."""

    name: str
    channels_last: bool
    batch: int | None
    """Images at once; None: any number."""
    side: int | None


class OnnxSession:
    """A network in onnxruntime; calls from several threads run beside each other.

    Args:
        model: A file, or its content; weights outside of a file's folder are not read.
        name: What the user calls it.
    """

    def __init__(self, model: Path | bytes, name: str) -> None:
        self.name = name
        self.session = _opened(model, name)
        self.input = _input(self.session, name)

    def __call__(self, pixels: Floats) -> Floats:
        """Vectors (B, D) of scaled images; the last one is repeated where the network takes no fewer."""
        missing = (self.input.batch or len(pixels)) - len(pixels)
        whole = np.concatenate([pixels, pixels[-1:].repeat(missing, axis=0)]) if missing else pixels
        [made] = self.session.run(None, {self.input.name: whole})
        vectors: Floats = np.asarray(made, dtype=np.float32)[: len(pixels)]
        if vectors.ndim > 2 and vectors.shape[2:] == (1,) * (vectors.ndim - 2):
            vectors = vectors.reshape(vectors.shape[:2])  # Pooled maps keep their two axes.
        require_vectors(self.name, vectors.shape, len(pixels))
        return vectors


class OnnxEncoder:
    """An encoder that is an ONNX graph.

    Args:
        name: What the user calls it.
        identity: What distinguishes its vectors from those of others.
        session: Scaled images -> (B, D).
        preprocessing: What is done to images first.
    """

    at_once = 128
    """Enough pieces for many threads, and few moments at which one waits for the last."""

    def __init__(self, name: str, identity: str, session: OnnxSession, preprocessing: Preprocessing) -> None:
        self.name, self.identity, self.session, self.preprocessing = name, identity, session, preprocessing
        side = preprocessing.side
        self.feature_size = self(np.zeros((1, side, side, 3), np.uint8)).shape[1]

    def __call__(self, images: Bytes) -> Floats:
        """Vectors of images (B, H, W, C) of any size, grey or colour: (B, D)."""
        threads = torch.get_num_threads()
        size = self.session.input.batch or min(_PIECE, math.ceil(len(images) / threads))
        pieces = [images[start : start + size] for start in range(0, len(images), size)]
        with ThreadPoolExecutor(threads) as pool:
            return np.concatenate(list(pool.map(self._vectors, pieces)))

    def _vectors(self, images: Bytes) -> Floats:
        squares = self.preprocessing.colour_squares(images)
        return self.session(scaled(squares, self.preprocessing, channels_last=self.session.input.channels_last))


def scaled(squares: Bytes, preprocessing: Preprocessing, *, channels_last: bool) -> Floats:
    """Images (B, side, side, 3) as an encoder wants their pixels, (B, 3, side, side) unless channels are last."""
    made = np.empty(squares.shape if channels_last else (len(squares), 3, *squares.shape[1:3]), np.float32)
    for channel, (mean, std) in enumerate(zip(preprocessing.mean, preprocessing.std)):
        # One channel after the other takes a fifth of the time of all at once and a transposed copy.
        target = made[..., channel] if channels_last else made[:, channel]
        np.subtract(squares[..., channel], np.float32(mean * 255), out=target)
        target /= np.float32(std * 255)
    return made


def _opened(model: Path | bytes, name: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(f"The encoder '{name}' needs onnxruntime. Get it with: {ONNX_EXTRA}") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # What is wrong is said once, below.
    options.intra_op_num_threads = 1  # Those who call it have threads of their own.
    content = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # Its exceptions have no common base.
        raise _not_opened(name.removeprefix("onnx:"), " ".join(str(error).split())) from error


def _not_opened(path: str, reason: str) -> UserError:
    if "External data path" in reason:
        return UserError(f"{path} keeps weights outside of its folder, which are not read. Put them beside it.")
    return UserError(f"{path} is no ONNX file that can be run ({reason[:200]}). Export it anew.")


def _input(session: Any, name: str) -> OnnxInput:
    """The one input, if it is images and there is one output."""
    inputs, outputs, path = session.get_inputs(), session.get_outputs(), name.removeprefix("onnx:")
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
    return OnnxInput(entry.name, places[0] == 3, batch, side)
