"""Some of the images of a source: those of one split, or some that are drawn."""

import hashlib

import numpy as np
import numpy.typing as npt

from dccm.data.sources.arrays import ArraySource
from dccm.data.sources.base import Item, Source
from dccm.errors import require

Places = npt.NDArray[np.int64]


class Subset(Source):
    """The images at some places of a source, in their order.

    What the source itself had left out is left out here too: nothing tells of which split it would have been.

    Args:
        source: All images.
        places: Which of them; rising.
        called: What they are called, such as `split=train`.
    """

    def __init__(self, source: Source, places: Places, called: str) -> None:
        self._source, self._places = source, places
        self.kind, self.in_order, self.skipped = source.kind, source.in_order, source.skipped
        self.place = _place(source, called)
        self.names = source.names.take(places)
        self.labels = None if source.labels is None else source.labels[places]
        self.splits = None if source.splits is None else source.splits[places]

    def read(self, index: int) -> Item:
        """One image."""
        return self._source.read(int(self._places[index]))

    def changed(self) -> bool:
        """Whether the source has."""
        return self._source.changed()

    def fingerprint(self) -> str:
        """Of the source, and of which images of it these are: a list of files can change their splits alone."""
        return hashlib.sha256(self._source.fingerprint().encode() + self._places.tobytes()).hexdigest()


def of_split(source: Source, split: str) -> Source:
    """The images of one split."""
    where = source.place or f"the {source.kind}"
    require(source.splits is not None, f"split must be left out for {where}: it has no splits, got '{split}'.")
    assert source.splits is not None
    splits = source.splits.astype(str)
    known = np.unique(splits).tolist()
    require(split in known, f"split must be {' or '.join(known)} for {where}, got '{split}'. Choose one of its splits.")
    places = np.flatnonzero(splits == split)
    return _part(source, places, f"split={split}")


def drawn(source: Source, count: int) -> Source:
    """So many images, drawn at random, in their order; the same ones every time. All, if there are no more."""
    if count >= len(source):
        return source
    places = np.sort(np.random.default_rng(0).permutation(len(source))[:count])
    return _part(source, places, f"drawn={count}")


def _part(source: Source, places: Places, called: str) -> Source:
    return _rows(source, places, called) if isinstance(source, ArraySource) else Subset(source, places, called)


def _rows(source: ArraySource, places: Places, called: str) -> ArraySource:
    """Rows of an array; if they lie side by side, none is copied, and what is mapped from a file stays so."""
    first, last = int(places[0]), int(places[-1])
    rows = slice(first, last + 1) if last - first + 1 == len(places) else places
    labels, splits = (None if column is None else column[rows] for column in (source.labels, source.splits))
    part = ArraySource(source.images[rows], source.names.take(places), labels, splits)
    part.kind, part.skipped, part.place = source.kind, source.skipped, _place(source, called)
    return part


def _place(source: Source, called: str) -> str | None:
    return source.place and f"{source.place}?{called}"
