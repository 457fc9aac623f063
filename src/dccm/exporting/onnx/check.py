"""Whether an exported model gives images of the run the clusters that they have: asked of onnxruntime."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import Bytes
from dccm.data.decode import picture
from dccm.data.sources.base import Item
from dccm.errors import UserError
from dccm.exporting.content import Content
from dccm.networks.encoders import ONNX_EXTRA
from dccm.training.progress import Stage

_ASKED = 64
"""Images, evenly spread over the run."""


def agreement(content: Content, file: Path, channels: int) -> str:
    """A sentence on how many images get the same cluster.

    Args:
        content: The run.
        file: The exported model.
        channels: Of images that it takes.
    """
    unknown = "Whether it gives the same clusters was not checked"
    if find_spec("onnxruntime") is None:
        return f"{unknown}, as that needs onnxruntime. Get it with: {ONNX_EXTRA}"
    session = _session(file)
    asked = same = 0
    try:
        content.originals.require_any()
    except UserError:
        return f"{unknown}, as the images are not where they were."
    rows = np.unique(np.linspace(0, len(content.rows) - 1, _ASKED).astype(int)).tolist()
    for row in rows:
        try:
            images = _as_bytes(content.originals.item(row), channels)[np.newaxis]
        except Exception:  # It is gone or damaged; the others tell.
            continue
        [probabilities] = session.run(["probabilities"], {"images": images})
        asked += 1
        same += int(probabilities[0].argmax() == content.rows.predicted[row])
        content.on_progress(Stage("comparing clusters", asked / len(rows)))
    return f"{same} of {asked} images of the run that were asked about get the same cluster from onnxruntime."


def _session(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _as_bytes(item: Item, channels: int) -> Bytes:
    """An image at its own size, (H, W, C)."""
    if channels not in (1, 3):
        return np.asarray(item)
    image = picture(item)
    pixels = np.asarray(image.convert("L") if channels == 1 else image)
    return pixels if pixels.ndim == 3 else pixels[..., np.newaxis]
