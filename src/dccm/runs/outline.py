"""Methods without memory: only the names and shapes of their weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from dccm.arrays import ImageShape
from dccm.methods import METHODS
from dccm.methods.base import Clusterer
from dccm.runs.config import RunConfig

_FILLS = frozenset({"normal_", "uniform_", "trunc_normal_"})
_WITH_NUMBERS = frozenset({"mul", "add"})


class _Unfilled(TorchFunctionMode):
    """Leaves out what fills weights or keeps their shape.

    Where there is no memory it would make torch import its compiler, for seconds.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in _FILLS:
            return args[0] if args else kwargs["tensor"]
        if name == "batch_norm" or (name in _WITH_NUMBERS and isinstance(args[1], int | float)):
            return args[0]
        if name == "eye":
            return kwargs["out"] if "out" in kwargs else torch.empty(args[0], args[-1])
        if name == "randint":
            return torch.empty(args[-1], dtype=torch.int64)
        return function(*args, **kwargs)


def outline(shape: ImageShape, config: RunConfig) -> Clusterer[Any]:
    """The method that settings describe, with weights that take no memory and can be compared by name and shape."""
    with torch.device("meta"), _Unfilled():
        return METHODS[config.method](shape, config.data.n_clusters, config.own)
