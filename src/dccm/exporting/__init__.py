"""A run written down for other programs: one file of `formats/` for each way, found by being there."""

import pkgutil
from pathlib import Path


def format_names() -> list[str]:
    """All formats as they are typed, in alphabetical order; nothing of them is imported."""
    files = pkgutil.iter_modules([str(Path(__file__).parent / "formats")])
    return sorted(file.name.replace("_", "-") for file in files)
