"""All images of several shards as one source."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.data.names import Names
from dccm.data.sources.base import Item, Source
from dccm.data.sources.shards import Listed, OpenShard, Part, Shard, list_shard, shards_at
from dccm.data.storage import is_address
from dccm.errors import UserError, counted, require
from dccm.processes import mapped, pool_of

MODULES = ("dccm.data.parts",)
"""What processes that read shards import."""


class Shards(Source):
    """The images of shards, one shard after the other, in the order of their names.

    A shard that cannot be read is skipped, with the reason. Labels and splits are known if all others know theirs.

    Args:
        place: What the user named.
        shards: What is there.
        listed: What each of them holds.
    """

    kind = "shards"
    in_order = True

    def __init__(self, place: str, shards: Sequence[Shard], listed: Sequence[Listed]) -> None:
        self.shards = shards
        self.place = place if is_address(place) else str(Path(place).absolute())
        self.skipped = [row for one in listed for row in one.skipped]
        self.starts = np.cumsum([0, *(len(one.names) for one in listed)])
        require(
            self.starts[-1] > 0,
            f"{place} has {counted(len(shards), 'shard')}, and none holds an image that can be read; the first, "
            f"{self.skipped[0].path}: {self.skipped[0].reason}. Give sound ones."
            if self.skipped
            else f"{place} holds no image.",
        )
        self.names = Names(chain.from_iterable(one.names for one in listed))
        sound = [one for one in listed if len(one.names)]
        self.labels = _joined([one.labels for one in sound])
        self.splits = _joined([one.splits for one in sound])
        self._named = place
        self._fingerprint = _fingerprint(shards)
        self._at, self._open = -1, OpenShard(shards[0], 0)

    def read(self, index: int) -> Item:
        """One image; the shard before it is let go of."""
        number = int(np.searchsorted(self.starts, index, side="right")) - 1
        if number != self._at:
            self.close()
            count = int(self.starts[number + 1] - self.starts[number])
            self._at, self._open = number, OpenShard(self.shards[number], count)
        return self._open.read(index - int(self.starts[number]))

    def close(self) -> None:
        """Let go of the shard that is open."""
        self._open.close()
        self._at = -1

    def parts(self, start: int) -> Iterator[tuple[int, Part]]:
        """What is left from an image on, shard by shard, each with the number of its first image."""
        for number, shard in enumerate(self.shards):
            begin, end = int(self.starts[number]), int(self.starts[number + 1])
            first = max(start, begin)
            if first < end:
                names = (self.names[place] for place in range(first, end))
                yield first, Part(shard, end - begin, first - begin, names)

    def label_by_folder(self) -> None:
        """As for all sources; the first folder is that within the shard."""
        names, self.names = self.names, Names(self._within())
        try:
            super().label_by_folder()
        finally:
            self.names = names

    def _within(self) -> Iterator[str]:
        for number, shard in enumerate(self.shards):
            for place in range(int(self.starts[number]), int(self.starts[number + 1])):
                yield self.names[place].removeprefix(shard.prefix)

    def changed(self) -> bool:
        """Whether another listing finds other shards."""
        try:
            return _fingerprint(shards_at(self._named)) != self._fingerprint
        except (OSError, UserError):
            return True

    def fingerprint(self) -> str:
        """Of the names and states of all shards."""
        return self._fingerprint


def open_shards(place: str, processes: int | None = None) -> Shards:
    """The images of all shards at a path or address.

    Args:
        place: As for `shards_at`.
        processes: That list them; None: this one alone.
    """
    shards = shards_at(place)
    if (processes or 1) == 1 or len(shards) == 1:
        return Shards(place, shards, [list_shard(shard) for shard in shards])
    with pool_of(min(processes or 1, len(shards)), MODULES) as pool:
        return Shards(place, shards, list(mapped(pool, list_shard, shards, 2 * (processes or 1))))


def _joined(columns: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    """One column of several, as words where they differ in kind; none if one is missing."""
    known = [column for column in columns if column is not None]
    if len(known) < len(columns):
        return None
    alike = len({column.dtype.kind for column in known}) == 1
    return np.concatenate(known if alike else [column.astype(str) for column in known])


def _fingerprint(shards: Sequence[Shard]) -> str:
    digest = hashlib.sha256()
    for shard in shards:
        digest.update(f"{shard.name!r} {shard.stamp}\n".encode())
    return digest.hexdigest()
