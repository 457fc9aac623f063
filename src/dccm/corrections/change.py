"""What a person may change, as one record each: read from JSON, checked against what is there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dccm.errors import UserError, choose, require

KINDS = ("move", "merge", "split", "create", "rename", "mark", "undo", "redo")
MARKS = ("", "wrong", "outlier")
"""What can be said of an image; the number of a mark is its place here."""
_LONGEST_NAME = 200
_LARGEST = 2**62
"""Numbers above do not fit into arrays."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change; which of the fields count, its kind says."""

    kind: str
    images: Sequence[int] = ()
    """Rows of `assignments.csv`."""
    cluster: int = 0
    """Where images go, what is merged into, split, made or renamed."""
    clusters: Sequence[int] = ()
    """What is merged."""
    parts: Sequence[tuple[int, Sequence[int]]] = ()
    """What is split off: number and images of each new cluster."""
    name: str = ""
    mark: str = ""
    change: int = 0
    """Number of the change that is undone or redone."""

    def __post_init__(self) -> None:
        choose(self.kind, KINDS, "kind of change", "dccm corrections RUN --export -")
        choose(self.mark, MARKS, "mark", "dccm corrections RUN --export -")

    def document(self) -> dict[str, Any]:
        """The fields that count, ready for JSON."""
        return {name: getattr(self, name) for name in FIELDS[self.kind]}


@dataclass(frozen=True)
class Entry:
    """A change in the log."""

    number: int
    """From 1, rising; the number of the last one is the version of the whole."""
    time: str
    who: str
    change: Change = field(repr=False)


FIELDS: dict[str, tuple[str, ...]] = {
    "move": ("images", "cluster"),
    "merge": ("clusters", "cluster"),
    "split": ("cluster", "parts"),
    "create": ("cluster", "name", "images"),
    "rename": ("cluster", "name"),
    "mark": ("images", "mark"),
    "undo": ("change",),
    "redo": ("change",),
}
"""What each kind of change is made of."""


def change_from(document: object) -> Change:
    """The change that a JSON document describes; what is wrong with it is named."""
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise UserError('A change must be a JSON object with a "kind". Write it as "dccm corrections --export" does.')
    kind = choose(document["kind"], KINDS, "kind of change", "dccm corrections RUN --export -")
    missing = [name for name in FIELDS[kind] if name not in document]
    require(not missing, f"A change of the kind {kind} must name {' and '.join(missing)}. Add it.")
    try:
        return Change(kind=kind, **{name: _READ[name](document[name]) for name in FIELDS[kind]})
    except UserError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"A change of the kind {kind} is wrong: {error}.") from error


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST:
        raise ValueError(f"{str(value)[:50]!r} is no number of an image or cluster")
    return value


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{str(value)[:50]!r} is no list of numbers")
    return tuple(map(_number, value))


def _parts(value: object) -> tuple[tuple[int, tuple[int, ...]], ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("parts must be a list")
    return tuple((_number(number), _numbers(images)) for number, images in value)


def _name(value: object) -> str:
    name = " ".join(value.split()) if isinstance(value, str) else ""
    sound = isinstance(value, str) and len(name) <= _LONGEST_NAME and (name.isprintable() or name == "")
    require(
        sound, f"A name must be text of at most {_LONGEST_NAME} characters that can be printed. Choose another one."
    )
    return name


def _mark(value: object) -> str:
    return str(value)


_READ: dict[str, Any] = {
    "images": _numbers,
    "cluster": _number,
    "clusters": _numbers,
    "parts": _parts,
    "name": _name,
    "mark": _mark,
    "change": _number,
}
