"""The paper, run again: which runs each table and figure needs, how they are made, and what they become."""

import pkgutil
from pathlib import Path

GROUPS = ("all", "beyond")
"""All tables and figures of the paper, and those beyond it."""


def target_names() -> list[str]:
    """All tables and figures, in alphabetical order; nothing of them is imported."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / "targets")]))
