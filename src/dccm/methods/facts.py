"""What the class of a method says of itself, without importing it: torch takes seconds, and a list should not."""

import ast
from importlib import resources
from typing import Any, NamedTuple


class Facts(NamedTuple):
    """Constants of a method's class; `Clusterer` explains them."""

    year: int
    citation: str
    learns: str
    cost: str
    takes_vectors: bool = False
    needs_vectors: bool = False


def facts_of(module: str, name: str) -> Facts:
    """The facts that stand at the top of a class, as `year = 2019`.

    Args:
        module: Of `dccm.methods`.
        name: The class.
    """
    text = resources.files("dccm.methods").joinpath(f"{module}.py").read_text(encoding="utf-8")
    [found] = [part for part in ast.parse(text).body if isinstance(part, ast.ClassDef) and part.name == name]
    return Facts(**{key: value for key, value in _constants(found).items() if key in Facts._fields})


def _constants(found: ast.ClassDef) -> dict[str, Any]:
    set_here = [(part.targets[0], part.value) for part in found.body if isinstance(part, ast.Assign)]
    return {
        target.id: value.value
        for target, value in set_here
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant)
    }
