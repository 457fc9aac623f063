"""ONNX files, written without the package of that name: nested fields of protocol buffers, of which few are needed."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_IR_VERSION, _OPERATORS = 8, 13
"""Versions of the format and of its operators; any onnxruntime of the last years knows them."""
TYPES = {"float32": 1, "uint8": 2, "int64": 7, "bool": 9, "float16": 10, "float64": 11}
"""Numbers of the types of numbers."""
_KINDS = {int: (3, 2), str: (4, 3), tuple: (8, 7)}
"""Where the value of an attribute stands, and the number of its type."""


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a message: a whole number, or anything that has a length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    low, rest = number & 127, (number & 2**64 - 1) >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


class OnnxGraph:
    """Operators in a row, each of which takes what earlier ones made, by name."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._weights: dict[str, bytes] = {}
        self._used: set[str] = set()

    def add(self, kind: str, *inputs: str, **attributes: int | float | str | tuple[int, ...]) -> str:
        """Add an operator; returns the name of what it makes."""
        output = f"{kind}{len(self._nodes)}"
        self._used.update(inputs)
        named = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)
        self._nodes.append(field(1, named + b"".join(_attribute(*item) for item in attributes.items())))
        return output

    def weight(self, values: npt.NDArray[Any]) -> str:
        """Add numbers that never change; returns their name."""
        name = f"weight{len(self._weights)}"
        axes = b"".join(field(1, size) for size in values.shape)
        content = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()
        kind = TYPES[values.dtype.name]
        self._weights[name] = field(5, axes + field(2, kind) + field(8, name) + field(9, content))
        return name

    def name(self, made: str, wanted: str) -> str:
        """Call something by another name, as for what goes out."""
        self._nodes.append(field(1, field(1, made) + field(2, wanted) + field(4, "Identity")))
        return wanted

    def file(
        self,
        inputs: dict[str, Sequence[int | str]],
        outputs: dict[str, Sequence[int | str]],
        *,
        types: Mapping[str, str] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> bytes:
        """The content of a file with this graph.

        Args:
            inputs: Shape of what comes in, by name; a word stands for any size.
            outputs: Of what goes out.
            types: Of numbers that come in or go out and are not float32.
            texts: What the file says of itself, by key.
        """
        known = types or {}
        weights = b"".join(weight for name, weight in self._weights.items() if name in self._used)
        graph = b"".join(self._nodes) + field(2, "graph") + weights
        graph += b"".join(field(11, _value(*item, known.get(item[0], "float32"))) for item in inputs.items())
        graph += b"".join(field(12, _value(*item, known.get(item[0], "float32"))) for item in outputs.items())
        said = b"".join(field(14, field(1, key) + field(2, text)) for key, text in (texts or {}).items())
        return field(1, _IR_VERSION) + field(8, field(1, "") + field(2, _OPERATORS)) + field(7, graph) + said


def _attribute(name: str, value: int | float | str | tuple[int, ...]) -> bytes:
    if isinstance(value, float):  # Four bytes, of which no length is said.
        return field(5, field(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1))
    number, kind = _KINDS[type(value)]
    content = b"".join(field(number, item) for item in value) if isinstance(value, tuple) else field(number, value)
    return field(5, field(1, name) + content + field(20, kind))


def _value(name: str, shape: Sequence[int | str], kind: str) -> bytes:
    axes = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, TYPES[kind]) + field(2, axes)))
