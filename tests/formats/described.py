"""What the files of a run look like, without what stands in them: names, columns, keys and types."""

import csv
import io
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors import safe_open

FREE = {"settings", "versions", "cost"}
"""Objects whose keys follow settings and machines."""


def described(run: Path) -> dict[str, set[str]]:
    """What each file of a run has; a later version may add, and takes nothing away."""
    files = sorted(path for path in run.rglob("*") if path.suffix in READERS)
    return {path.relative_to(run).as_posix(): set(READERS[path.suffix](path)) for path in files}


def _table(path: Path) -> list[str]:
    return next(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def _columns(path: Path) -> list[str]:
    return [f"{field.name}: {field.type}" for field in pq.read_schema(path)]


def _keys(path: Path) -> list[str]:
    return list(_of(json.loads(path.read_text(encoding="utf-8"))))


def _first_line(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(_of(json.loads(lines[0]))) if lines else []


def _tables(path: Path) -> list[str]:
    return list(_of(tomllib.loads(path.read_text(encoding="utf-8"))))


def _array(path: Path) -> list[str]:
    array = np.load(path)
    return [f"{array.dtype}, {array.ndim} axes"]


def _arrays(path: Path) -> list[str]:
    with np.load(path) as arrays:
        return [f"{name}: {arrays[name].dtype}, {arrays[name].ndim} axes" for name in arrays]


def _tensors(path: Path) -> list[str]:
    with safe_open(path, "np") as tensors:
        parts = [(name, tensors.get_slice(name)) for name in tensors.keys()]  # noqa: SIM118 - not a dictionary
        return [f"{name}: {part.get_dtype()} {part.get_shape()}" for name, part in parts]


def _of(document: dict[str, Any], above: str = "") -> list[str]:
    """Names of all values, those of objects within after a dot, with the type where it is known."""
    named: list[str] = []
    for name, value in document.items():
        whole = isinstance(value, dict) and name not in FREE
        kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        named += _of(value, f"{above}{name}.") if whole else [f"{above}{name}: {kind}"]
    return named


READERS: dict[str, Callable[[Path], list[str]]] = {
    ".csv": _table,
    ".parquet": _columns,
    ".json": _keys,
    ".jsonl": _first_line,
    ".toml": _tables,
    ".npy": _array,
    ".npz": _arrays,
    ".safetensors": _tensors,
}
