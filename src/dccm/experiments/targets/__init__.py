"""What can be reproduced: each table or figure is one file of this folder, and is found by being there.

To add one, write `<name>.py` with a docstring that says which runs it needs and how they become the result, and:

    TARGET = Target("What the caption says", needs, make)

`needs(request)` yields a `Need` for each run: a `RunSpec` made by `request.spec(...)`, which leaves out what the preset
says anyway, so that equal runs of different tables are made once, and the measures that are taken of it.
`make(request, results)` reads finished runs from `results` (`results.result(spec)` is None for one that failed or is
not there yet) and returns what can be saved and shown: a `Table`, or anything else with the members of `Shown`.
Nothing else has to be changed: `dccm reproduce <name>` knows it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from dccm.errors import choose
from dccm.experiments import GROUPS, target_names
from dccm.experiments.measure import Measure
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec


class Shown(Protocol):
    """A finished table or figure."""

    @property
    def caption(self) -> str:
        """Title, budget and what is missing, in one paragraph without markup."""

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write it in all its formats as `<folder>/<name>.<suffix>`, with its data; returns the files."""

    def html(self) -> str:
        """As part of a page that loads nothing from outside: a `<table>`, or an inline `<svg>`."""

    def text(self) -> str:
        """As plain text for a terminal."""


@dataclass(frozen=True)
class Need:
    """A run that a table or figure needs, and what it wants to know of it."""

    spec: RunSpec
    measures: tuple[Measure[Any], ...] = ()


@dataclass(frozen=True)
class Target:
    """A table or figure."""

    title: str
    needs: Callable[[Request], Iterable[Need]]
    make: Callable[[Request, Results], Shown]
    usual: tuple[str, ...] = ("cifar10",)
    """Data sets that the paper shows here; what is not there is skipped."""
    group: Literal["all", "beyond"] = "all"
    """Of the paper, or beyond it: `dccm reproduce all` and `dccm reproduce beyond` make the ones or the others."""


def find_target(name: str) -> Target:
    """A table or figure by its name."""
    target: Target = import_module(f"{__name__}.{name}").TARGET
    return target


def chosen_targets(names: Iterable[str]) -> dict[str, Target]:
    """Tables and figures by name; `all` stands for those of the paper, `beyond` for the others."""
    found: dict[str, Target] = {}
    for name in names:
        choose(name, [*target_names(), *GROUPS], "table or figure", "dccm reproduce --help")
        group = {other: find_target(other) for other in target_names()} if name in GROUPS else {}
        found |= {other: target for other, target in group.items() if target.group == name}
        found |= {} if name in GROUPS else {name: find_target(name)}
    return found
