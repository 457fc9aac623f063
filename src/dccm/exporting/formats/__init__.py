"""Ways to write a run down: each is one file of this folder, and is found by being there.

To add one, write `<name>.py` with a docstring that says what reads it, and:

    FORMAT = Format("What it is for", write, suffix=".csv")

`write(content, path)` is given what there is to be written, and a place that nobody sees before all of it is there: the
name of a file that is to be made or, without a suffix, a folder to be filled. What it raises leaves nothing behind.
It returns sentences that the user should read. Nothing else has to be changed: `dccm export --to <name>` knows it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from dccm.errors import choose
from dccm.exporting import format_names
from dccm.exporting.content import Content


@dataclass(frozen=True)
class Format:
    """A way to write a run down."""

    purpose: str
    """In a few words."""
    write: Callable[[Content, Path], Sequence[str]]
    suffix: str = ""
    """Of the file that it makes; empty: it makes a folder."""
    embedding: bool = True
    """Whether the embedding is written where nothing is said about it."""


def find_format(name: str) -> Format:
    """A format by its name."""
    choose(name, format_names(), "format", "dccm export --help")
    found: Format = import_module(f"{__name__}.{name.replace('-', '_')}").FORMAT
    return found
