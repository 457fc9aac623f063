"""What was found out about a finished run that not every run needs: how it is taken, and what its file must hold."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dccm.data.images import ImageSet
from dccm.documents import check
from dccm.runs.directory import RunDirectory

Found = TypeVar("Found")
_ROUNDING = 1e-6
"""By which a share may pass its bounds."""


@dataclass(frozen=True)
class Measure(Generic[Found]):
    """Something found out about a finished run; taken once, kept in the run's directory."""

    name: str
    """In the file's name, `measure-<name>.json`."""
    take: Callable[[RunDirectory, ImageSet], dict[str, Any]]
    """A function of a module, given the run and all images of its data set with labels and splits; returns JSON."""
    found: type[Found]
    """A dataclass or named tuple of what it returns; if it checks itself, a file of a stranger is refused by that."""


def check_shares(name: str, values: Iterable[float]) -> None:
    """Refuse what is no share of a whole, such as an accuracy."""
    for value in values:
        check(-_ROUNDING <= value <= 1 + _ROUNDING, f"{name} must lie in [0, 1], got {value}")


def check_moments(name: str, values: list[float]) -> None:
    """Refuse what are no moments of a run, one after the other."""
    check(len(values) > 0 and all(0 <= value < math.inf for value in values), f"{name} must be numbers from 0 up")
    check(values == sorted(set(values)), f"{name} must grow from one to the next")


def check_lengths(name: str, count: int, *lists: list[Any]) -> None:
    """Refuse lists of which some are longer than others."""
    for one in lists:
        check(len(one) == count, f"{name} must be lists of {count:,} values, got one of {len(one):,}")
