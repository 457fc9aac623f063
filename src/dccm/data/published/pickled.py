"""The dictionaries in which CIFAR is published, without running what a pickle may ask for.

A pickle is a program. This reader lets it name nothing but the three things of which Python 2 and NumPy built an
array, and gives it stand-ins even for those: they keep shape and bytes, and the array is made here.
"""

import io
import pickle
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dccm.arrays import Bytes
from dccm.errors import UserError


class _ForbiddenError(Exception):
    """The pickle asks for something that no array needs."""


class _Type:
    """Stands in for `numpy.dtype`."""

    def __init__(self, code: bytes, *_: object) -> None:
        self.code = code

    def __setstate__(self, state: object) -> None:
        """Byte order and the like mean nothing for single bytes."""


class _Array:
    """Stands in for `numpy.ndarray` until its shape and bytes are known."""

    shape: tuple[int, ...] = ()
    content = b""
    by_columns = False

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, by_columns, content = state
        sizes_are_sound = isinstance(shape, tuple) and all(isinstance(size, int) and size >= 0 for size in shape)
        if not sizes_are_sound or not isinstance(content, bytes) or prod(shape) != len(content):
            raise ValueError("its array has another number of bytes than its shape says")
        if not isinstance(kind, _Type) or kind.code != b"u1":
            raise ValueError("its array does not hold bytes")
        self.shape, self.content, self.by_columns = shape, content, bool(by_columns)

    def pixels(self) -> Bytes:
        order: Literal["C", "F"] = "F" if self.by_columns else "C"
        return np.frombuffer(self.content, dtype=np.uint8).reshape(self.shape, order=order)


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _STAND_INS:
            raise _ForbiddenError(f"{module}.{name}")
        return _STAND_INS[module, name]


def read_dictionary(content: bytes, where: Path) -> dict[bytes, Any]:
    """A dictionary of lists, numbers, text and arrays of bytes, as Python 2 wrote it; text comes as bytes.

    Args:
        content: The pickle.
        where: Its file, for messages.
    """
    try:
        found = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
    except _ForbiddenError as error:
        raise UserError(
            f"{where} asks to run {error}, which no official file does; nothing of it was run. "
            "Do not trust it: delete it, and get the official one."
        ) from error
    except Exception as error:  # A damaged pickle raises nearly everything.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{where} is damaged ({reason}). Delete it, and get the official one.") from error
    if not isinstance(found, dict):
        raise UserError(f"{where} must hold a dictionary, it holds a {type(found).__name__}. Get the official one.")
    return {key: value.pixels() if isinstance(value, _Array) else value for key, value in found.items()}
