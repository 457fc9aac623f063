"""Arrays in .npy and .npz files: what a head claims is compared with what is there, before anything is made of it."""

import lzma
import math
import os
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.files import open_regular

Array = npt.NDArray[Any]

_ODD = (ValueError, SyntaxError, TypeError, KeyError, OverflowError, RecursionError, MemoryError, EOFError, TokenError)
"""What NumPy's parser raises for heads that are none."""
_ODD_ARCHIVE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, NotImplementedError)


class _Head(NamedTuple):
    shape: tuple[int, ...]
    columns_first: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """In bytes; NumPy's own product would wrap."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def order(self) -> Any:
        return "F" if self.columns_first else "C"


def map_array(path: Path) -> Array:
    """The array of an .npy file, mapped into memory and not writable; `ValueError` says what is wrong with it."""
    with open_regular(path) as file:
        head = _head(file, os.fstat(file.fileno()).st_size)
        if not head.size:
            return np.empty(head.shape, head.dtype)
        return np.memmap(path, head.dtype, "r", offset=file.tell(), shape=head.shape, order=head.order)


def read_arrays(path: Path, most: int | None = None) -> dict[str, Array]:
    """The arrays of an .npz file by name; `ValueError` says what is wrong with it.

    Args:
        path: The file.
        most: Bytes that they may have together; None: any number.
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if most is not None and sum(member.file_size for member in members) > most:
                raise ValueError(f"its arrays are larger than {most:,} bytes")
            return {member.filename.removesuffix(".npy"): _member(archive, member) for member in members}
    except MemoryError:
        raise ValueError("its arrays are larger than the memory") from None
    except _ODD_ARCHIVE as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as file:
        head = _head(file, member.file_size)
        content = file.read(head.size)
    if len(content) != head.size:
        raise ValueError(f"{member.filename!r:.40} is cut short")
    return np.frombuffer(content, head.dtype).reshape(head.shape, order=head.order)


def _head(file: IO[bytes], available: int) -> _Head:
    """The head of an array; the file stands behind it then."""
    try:
        versions = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        read = versions[np.lib.format.read_magic(file)]
        head = _Head(*read(file))
    except _ODD as error:
        raise ValueError("its head is not one that numpy.save writes") from error
    if head.dtype.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    if not head.dtype.itemsize or any(type(length) is not int or length < 0 for length in head.shape):
        raise ValueError("its head is not one that numpy.save writes")
    left = available - file.tell()
    if head.size > left:
        raise ValueError(f"its head promises {head.size:,} bytes, and it has {left:,}")
    return head
