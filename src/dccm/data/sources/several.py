"""Several sources as one: a folder and an archive, for example."""

import hashlib
import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.data.images import Skipped
from dccm.data.names import Names
from dccm.data.sources.base import Item, Source
from dccm.errors import require


class Sources(tuple[Any, ...]):
    """What the user named, to be taken as one source; a plain list is one of image files."""


class Several(Source):
    """The images of sources, one after the other; what each is called comes before the names of its images.

    Labels and splits are known if all sources know theirs.

    Args:
        named: What the user called each.
        sources: They themselves.
    """

    kind = "several sources"

    def __init__(self, named: Sequence[Any], sources: Sequence[Source]) -> None:
        called = [str(each) for each in named]
        twice = next((name for name in called if called.count(name) > 1), None)
        require(twice is None, f"Sources must differ, got {twice} twice. Name each once.")
        self._sources = sources
        self._starts = np.cumsum([0, *(len(source) for source in sources)])
        self.in_order = any(source.in_order for source in sources)
        self.names = Names(chain.from_iterable(map(_below, called, (source.names for source in sources))))
        self.skipped = [
            Skipped(f"{name.rstrip('/')}/{path}", reason)
            for name, source in zip(called, sources)
            for path, reason in source.skipped
        ]
        self.labels = _joined([source.labels for source in sources])
        self.splits = _joined([source.splits for source in sources])
        places = [source.place for source in sources]
        self.place = json.dumps(places) if all(places) else None

    def read(self, index: int) -> Item:
        """One image."""
        number = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self._sources[number].read(index - int(self._starts[number]))

    def changed(self) -> bool:
        """Whether any of them has."""
        return any(source.changed() for source in self._sources)

    def fingerprint(self) -> str:
        """Of all sources."""
        return hashlib.sha256(json.dumps([source.fingerprint() for source in self._sources]).encode()).hexdigest()


def _below(called: str, names: Sequence[str]) -> list[str]:
    return [f"{called.rstrip('/')}/{name}" for name in names]


def _joined(columns: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    """One column of several, as words; none if one is missing."""
    known = [column.astype(str) for column in columns if column is not None]
    return np.concatenate(known) if len(known) == len(columns) else None
