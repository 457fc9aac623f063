"""Which images have a text in their path: quick for millions of them."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_BETWEEN = b"\0"
"""Between two paths; no file name holds it."""


class Paths:
    """All paths in one text, in small letters.

    Args:
        paths: One for each image.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        pieces = [path.lower().encode("utf-8", "surrogateescape") for path in paths]
        self._text = _BETWEEN.join(pieces)
        self._ends = np.cumsum([len(piece) + 1 for piece in pieces], dtype=np.int64)

    def holding(self, text: str) -> npt.NDArray[np.bool_]:
        """Whether each path holds this text, in large or small letters."""
        wanted = text.lower().encode("utf-8", "surrogateescape")
        found = np.zeros(len(self._ends), dtype=bool)
        if _BETWEEN not in wanted:
            places = [match.start() for match in re.finditer(re.escape(wanted), self._text)]
            found[np.searchsorted(self._ends, places, side="right")] = True
        return found
