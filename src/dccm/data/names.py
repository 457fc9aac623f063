"""Very many names in few bytes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

LONGEST = 4096
"""Bytes of a name, as of a path on Linux; what is longer is no name but an attack on those who read it."""


def is_too_long(name: str) -> bool:
    """Whether no file could be called so."""
    return len(name) > LONGEST or len(name.encode("utf-8", "surrogateescape")) > LONGEST


def shortened(name: str) -> str:
    """A name, or the beginning of one that is too long."""
    return f"{name[:100]}... ({len(name):,} characters)" if is_too_long(name) else name


class Names(Sequence[str]):
    """A list of names that costs its text and eight bytes for each name: a list of `str` takes some 60 more.

    Names of files may be any bytes; those that are no text travel as surrogates, as Python's own file names do.
    """

    def __init__(self, names: Iterable[str]) -> None:
        text = bytearray()
        ends: list[npt.NDArray[np.int64]] = []
        for block in _blocks(names):
            pieces = [name.encode("utf-8", "surrogateescape") for name in block]
            ends.append(len(text) + np.cumsum([len(piece) for piece in pieces], dtype=np.int64))
            text += b"".join(pieces)
        self._text = text
        self._ends = np.concatenate([np.zeros(1, dtype=np.int64), *ends])

    @classmethod
    def of_parts(cls, text: memoryview, ends: npt.NDArray[np.int64]) -> "Names":
        """Names that lie in one text, one after the other.

        Args:
            text: Of all of them.
            ends: Where each ends, behind where the first one begins, (N + 1,).
        """
        made = cls(())
        made._text, made._ends = bytearray(text[int(ends[0]) : int(ends[-1])]), ends - ends[0]
        return made

    def blocks(self, size: int = 10_000) -> Iterator[bytes]:
        """The text of so many names after the other, with a zero behind each; one within a name becomes a space."""
        for start in range(0, len(self), size):
            ends = self._ends[start : start + size + 1]
            text = np.frombuffer(self._text[ends[0] : ends[-1]].replace(b"\0", b" "), np.uint8)
            yield np.insert(text, ends[1:] - ends[0], 0).tobytes()

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> "Names": ...
    def __getitem__(self, place: int | slice) -> "str | Names":
        if isinstance(place, slice):
            return Names(self[number] for number in range(*place.indices(len(self))))
        number = range(len(self))[place]
        return self._text[self._ends[number] : self._ends[number + 1]].decode("utf-8", "surrogateescape")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other))

    def take(self, places: npt.NDArray[np.int64]) -> "Names":
        """The names at these places."""
        if len(places) == len(self):
            return self  # Places rise, so these are all of them.
        return Names(self[int(place)] for place in places)


def _blocks(names: Iterable[str], size: int = 10_000) -> Iterable[list[str]]:
    block: list[str] = []
    for name in names:
        block.append(name)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
