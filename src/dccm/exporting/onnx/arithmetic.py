"""Sums as operators: numbers that are only known when the graph runs, written as people write sums."""

from typing import Any

import numpy as np

from dccm.networks.onnx_graph import OnnxGraph


class Number:
    """What a graph computes, in double precision; a sum of two is another operator.

    Args:
        graph: Where operators are added.
        name: Of what it is the result.
    """

    def __init__(self, graph: OnnxGraph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: "Number | float") -> "Number":
        return self.with_("Add", other)

    def __sub__(self, other: "Number | float") -> "Number":
        return self.with_("Sub", other)

    def __mul__(self, other: "Number | float") -> "Number":
        return self.with_("Mul", other)

    def __truediv__(self, other: "Number | float") -> "Number":
        return self.with_("Div", other)

    def with_(self, kind: str, other: "Number | float", **attributes: Any) -> "Number":
        """An operator of both."""
        return self.of(kind, self, other, **attributes)

    def of(self, kind: str, *others: "Number | float", **attributes: Any) -> "Number":
        """An operator of these."""
        names = [other.name if isinstance(other, Number) else self.constant(other).name for other in others]
        return Number(self.graph, self.graph.add(kind, *names, **attributes))

    def then(self, kind: str, **attributes: Any) -> "Number":
        """An operator of this alone."""
        return self.of(kind, self, **attributes)

    def constant(self, value: Any) -> "Number":
        """A number, or several, that are known now."""
        return Number(self.graph, self.graph.weight(np.asarray(value, np.float64)))

    def below(self, other: "Number | float") -> "Number":
        """One where this is smaller, else zero."""
        return self.with_("Less", other).then("Cast", to=11)

    def total(self, axis: int) -> "Number":
        """The sum along an axis, which stays with one place."""
        axes = self.graph.weight(np.array([axis], np.int64))
        return Number(self.graph, self.graph.add("ReduceSum", self.name, axes, keepdims=1))
