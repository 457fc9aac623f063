"""Which images have a text in their path: quick for millions of them."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dccm.data.names import Names

_BETWEEN = b"\0"
"""Behind each path; no file name holds it."""


class Paths:
    """All paths in one text, in small letters.

    Args:
        paths: One for each image.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        names = paths if isinstance(paths, Names) else Names(paths)
        pieces = [_small(block) for block in names.blocks()]
        self._text = b"".join(pieces)
        self._ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == _BETWEEN[0]) + 1
        self._count = len(names)

    def holding(self, text: str) -> npt.NDArray[np.bool_]:
        """Whether each path holds this text, in large or small letters."""
        wanted = text.lower().encode("utf-8", "surrogateescape")
        found = np.zeros(self._count, dtype=bool)
        if _BETWEEN not in wanted:
            places = [match.start() for match in re.finditer(re.escape(wanted), self._text)]
            found[np.searchsorted(self._ends, places, side="right")] = True
        return found


def _small(text: bytes) -> bytes:
    """A text in small letters, which may have another length."""
    return text.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")
