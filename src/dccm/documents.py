"""Small files that may come from strangers: one reader for JSON, one for lines of JSON, one for TOML.

What is read has bounds in size, depth and digits before anything is made of it, and becomes what has a type. Whatever
is wrong is a `ValueError` that says what; `named_if_broken` makes the user's sentence of it, with the file's name.
"""

import json
import math
import tomllib
import types
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from dccm.errors import UserError
from dccm.files import open_regular

Kind = TypeVar("Kind")

LARGEST = 4_000_000
"""Bytes of a small file, unless its reader allows more."""
_LARGEST_OF_LINES = 64_000_000
_DEEPEST = 16
"""Levels of brackets; none of ours has more than five."""
_BEYOND = 2**63
"""Whole numbers are smaller: they fit 64 bits."""
UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError, OverflowError, zipfile.BadZipFile, zlib.error)
"""What readers raise when the content is not theirs."""


@contextmanager
def named_if_broken(path: Path, repair: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one sentence that names it and the way out."""
    try:
        yield
    except UserError:
        raise
    except UNREADABLE as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:300] or type(error).__name__
        raise UserError(f"{path} is broken ({reason}); {repair}.") from error


def read_small(path: Path, most: int = LARGEST) -> bytes:
    """The content of a regular file of no more than so many bytes."""
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"larger than {most:,} bytes")
    return content


def read_json(path: Path) -> Any:
    """What a file of JSON holds."""
    return parse_json(read_small(path))


def read_json_lines(path: Path) -> list[Any]:
    """What each line of a file holds that is not empty."""
    text = read_small(path, _LARGEST_OF_LINES).decode("utf-8")
    return [parse_json(line) for line in text.split("\n") if line.strip()]


def parse_json(text: str | bytes) -> Any:
    """What JSON holds; of what JSON does not know, NaN is taken, which stands where a method gives no number."""
    try:
        document = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_nan)
    except RecursionError:
        _refuse_depth()
    _require_shallow(document)
    return document


def read_toml(path: Path) -> dict[str, Any]:
    """What a file of TOML holds."""
    return parse_toml(read_small(path).decode("utf-8"))


def parse_toml(text: str) -> dict[str, Any]:
    """What TOML holds."""
    try:
        document = tomllib.loads(text, parse_float=_finite)
    except RecursionError:
        _refuse_depth()
    _require_shallow(document)
    return document


def _whole(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) >= _BEYOND:
        raise ValueError(f"a whole number beyond 64 bits, {digits[:20]}")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"a number that is not finite, {digits[:20]}")
    return value


def _nan(word: str) -> float:
    if word != "NaN":
        raise ValueError(f"a number that is not finite, {word}")
    return math.nan


def _require_shallow(document: Any) -> None:
    level = [document]
    for _ in range(_DEEPEST):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return
    _refuse_depth()


def _parts(whole: Any) -> Iterator[Any]:
    """What a list or table holds."""
    inner = whole.values() if isinstance(whole, dict) else whole if isinstance(whole, list) else ()
    for part in inner:
        if isinstance(part, dict | list):
            yield part
        elif type(part) is int and abs(part) >= _BEYOND:
            raise ValueError("a whole number beyond 64 bits")


def _refuse_depth() -> NoReturn:
    raise ValueError(f"nested deeper than {_DEEPEST} levels")


def check(sound: bool, reason: str) -> None:
    """Raise a `ValueError` for what is wrong with a file, unless it is sound."""
    if not sound:
        raise ValueError(reason)


def filled(kind: type[Kind], document: object) -> Kind:
    """A dataclass or named tuple of what a document holds.

    Keys are those of its fields; those with a default may be missing. Values are what the fields' types say: texts,
    numbers, true and false, null, lists, tuples, tables of them, and other dataclasses. A named tuple may be a list.
    """
    if isinstance(document, list) and len(document) == len(getattr(kind, "_fields", ())) > 0:
        document = dict(zip(_hints(kind), document))
    if not isinstance(document, dict):
        raise ValueError("not an object of " + ", ".join(_hints(kind)))
    hints, optional = _hints(kind), _with_default(kind)
    for name in document:
        if name not in hints:
            raise ValueError(f"{name!r:.40} is not among " + ", ".join(hints))
    for name in hints:
        if name not in document and name not in optional:
            raise ValueError(f"{name} is missing")
    return kind(**{name: _typed(name, value, hints[name]) for name, value in document.items()})


def _hints(kind: type[Any]) -> dict[str, Any]:
    names = [entry.name for entry in fields(kind)] if is_dataclass(kind) else getattr(kind, "_fields", ())
    hints = get_type_hints(kind)
    return {name: hints[name] for name in names}


def _with_default(kind: type[Any]) -> set[str]:
    if not is_dataclass(kind):
        return set(getattr(kind, "_field_defaults", ()))
    return {
        entry.name for entry in fields(kind) if MISSING is not entry.default or MISSING is not entry.default_factory
    }


def _typed(name: str, value: Any, hint: Any) -> Any:
    """The value as its type wants it; `ValueError` if it is none of that type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _first_that_fits(name, value, inner)
    if hint is Any or (hint is type(None) and value is None):
        return value
    if hint in (bool, int, str) and type(value) is hint:
        return value
    if hint is float and type(value) in (int, float):
        return float(value)
    if origin is list and isinstance(value, list):
        return [_typed(name, item, inner[0]) for item in value]
    if origin is tuple and isinstance(value, list) and len(value) == len(inner):
        return tuple(_typed(name, item, kind) for item, kind in zip(value, inner))
    if origin is dict and isinstance(value, dict):
        return {key: _typed(f"{name}.{key:.40}", item, inner[1]) for key, item in value.items()}
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return _part(name, value, hint)
    raise ValueError(f"{name} must be {_wording(hint)}, got {value!r:.40}")


def _part(name: str, value: Any, kind: type[Kind]) -> Kind:
    try:
        return filled(kind, value)
    except ValueError as error:
        raise ValueError(f"{name} is wrong, {error}") from None


def _first_that_fits(name: str, value: Any, hints: tuple[Any, ...]) -> Any:
    reasons = []
    for hint in hints:
        try:
            return _typed(name, value, hint)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError(reasons[0])


def _wording(hint: Any) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "null"}
    if get_origin(hint) is tuple:
        return f"a list of {len(get_args(hint))} values"
    return words.get(hint) or {list: "a list", dict: "an object"}.get(get_origin(hint), "something else")
