"""Small ONNX files, some of them wrong on purpose."""

from pathlib import Path
from typing import Any

import numpy as np

from dccm.networks.onnx_graph import field

_FLOAT = 1
ADDED = np.array([1, 2, 3], np.float32)


def _value(name: str, shape: list[int | str], kind: int) -> bytes:
    axes = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, axes)))


def _node(kind: str, inputs: list[str], output: str) -> bytes:
    return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind))


def _weights(location: str) -> bytes:
    """Three numbers to add: in the file itself, or in another one."""
    head = field(1, 3) + field(2, _FLOAT) + field(8, "added")
    if not location:
        return field(5, head + field(9, ADDED.tobytes()))
    return field(5, head + field(13, field(1, "location") + field(2, location)) + field(14, 1))


def write_onnx(
    path: Path,
    shape: tuple[int | str, ...] = ("B", 3, 16, 16),
    *,
    outputs: int = 1,
    flat: bool = True,
    kind: int = _FLOAT,
    location: str = "",
) -> Path:
    """A file that makes of each image its mean colour plus (1, 2, 3).

    Args:
        path: Where to write it.
        shape: Of its input; with channels last, images themselves are the output.
        outputs: How many it has.
        flat: Whether vectors are (B, 3) or (B, 3, 1, 1).
        kind: Number of the type of its input.
        location: File with the three numbers that are added.
    """
    if shape[3] == 3:
        nodes, weights = _node("Flatten", ["images"], "features"), b""
    else:
        pooled = _node("GlobalAveragePool", ["images"], "pooled" if flat else "features")
        flattened = _node("Flatten", ["pooled"], "vectors") + _node("Add", ["vectors", "added"], "features")
        nodes, weights = pooled + (flattened if flat else b""), _weights(location) if flat else b""
    extra = b"".join(_node("Identity", ["features"], f"more{number}") for number in range(outputs - 1))
    made = ["features", *(f"more{number}" for number in range(outputs - 1))]
    graph = nodes + extra + field(2, "graph") + weights + field(11, _value("images", list(shape), kind))
    graph += b"".join(field(12, _value(name, ["B", "D"] if flat else ["B", 3, 1, 1], kind)) for name in made)
    path.write_bytes(field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph))
    return path


def mean_colour(images: Any) -> Any:
    return (images / 255).mean(axis=(1, 2))
