"""ONNX files, written without the package of that name: nested fields of protocol buffers, of which few are needed."""

from collections.abc import Sequence

import numpy as np

from dccm.arrays import Floats

_IR_VERSION, _OPERATORS = 8, 13
"""Versions of the format and of its operators; any onnxruntime of the last years knows them."""
_FLOAT = 1
_KINDS = {int: (3, 2), str: (4, 3), tuple: (8, 7)}
"""Where the value of an attribute stands, and the number of its type."""


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a message: a whole number, or anything that has a length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


class OnnxGraph:
    """Operators in a row, each of which takes what earlier ones made, by name."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._weights: list[bytes] = []

    def add(self, kind: str, *inputs: str, **attributes: int | str | tuple[int, ...]) -> str:
        """Add an operator; returns the name of what it makes."""
        output = f"{kind}{len(self._nodes)}"
        named = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)
        self._nodes.append(field(1, named + b"".join(_attribute(*item) for item in attributes.items())))
        return output

    def weight(self, values: Floats) -> str:
        """Add numbers that never change; returns their name."""
        name = f"weight{len(self._weights)}"
        axes = b"".join(field(1, size) for size in values.shape)
        content = np.ascontiguousarray(values, dtype="<f4").tobytes()
        self._weights.append(field(5, axes + field(2, _FLOAT) + field(8, name) + field(9, content)))
        return name

    def file(self, inputs: dict[str, Sequence[int | str]], outputs: dict[str, Sequence[int | str]]) -> bytes:
        """The content of a file with this graph.

        Args:
            inputs: Shape of what comes in, by name; a word stands for any size.
            outputs: Of what goes out.
        """
        graph = b"".join(self._nodes) + field(2, "graph") + b"".join(self._weights)
        graph += b"".join(field(11, _value(*item)) for item in inputs.items())
        graph += b"".join(field(12, _value(*item)) for item in outputs.items())
        return field(1, _IR_VERSION) + field(8, field(1, "") + field(2, _OPERATORS)) + field(7, graph)


def _attribute(name: str, value: int | str | tuple[int, ...]) -> bytes:
    number, kind = _KINDS[type(value)]
    content = b"".join(field(number, item) for item in value) if isinstance(value, tuple) else field(number, value)
    return field(5, field(1, name) + content + field(20, kind))


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    axes = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, _FLOAT) + field(2, axes)))
