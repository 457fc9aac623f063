"""The folder or prefix of results: what they are the results of, and which shards are done.

- `manifest.json`: all that decides the results, written first; at the end also what they are in sum;
- `shards.csv`: a row for each shard, with its images, and the reason where there is no result;
- a parquet file for each shard, called like it.

Results are put whole, so a stop at any moment leaves sound ones. One that is there counts if its shard is the same.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from dccm.data.sources.shards import Shard
from dccm.data.storage import Stored, fetch, files_at, is_address, opened_file, put
from dccm.documents import UNREADABLE, check, filled, named_if_broken, read_json
from dccm.errors import UserError, require
from dccm.files import read_csv, write_atomically, write_csv
from dccm.fleet.shard import Done, result_name
from dccm.fleet.table import said_of
from dccm.locks import held

_FORMAT = 1
_MANIFEST, _LEDGER, _LOCK = "manifest.json", "shards.csv", "run.lock"
_COLUMNS = ("shard", "images", "skipped", "passing", "size", "stamp", "reason")
_REPAIR = "choose another output"


class Output:
    """Results of one job on the shards of one place.

    Args:
        place: A folder, or an address.
        job: All that decides the results, but the images.
        images: Where these are.
    """

    def __init__(self, place: str | Path, job: Mapping[str, str], images: str) -> None:
        self.place = str(place).rstrip("/") if is_address(str(place)) else str(Path(place).absolute())
        self._job = dict(job)
        self.identity = self._job | {"images": images}
        self.known: dict[str, Done] = {}
        self._results: dict[str, Stored] = {}

    def held(self) -> AbstractContextManager[None]:
        """Keep others out where a disk can do that; in a storage, two at once put the same results."""
        if is_address(self.place):
            return nullcontext()
        try:
            Path(self.place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"Cannot make the output folder {self.place}: {error.strerror}"
            raise UserError(f"{reason}. Choose another one.") from error
        return held(Path(self.place) / _LOCK, self.place)

    def begin(self) -> None:
        """Find what is there; anything that is not of the same job is refused."""
        found = files_at(self.place)
        there = {found.name(file): file for file in found.files}
        if not is_address(self.place):
            _clear([file for name, file in there.items() if name.endswith(".partial")])
        there = {name: file for name, file in there.items() if name != _LOCK and not name.endswith(".partial")}
        if _MANIFEST not in there:
            require(
                not there, f"The output {self.place} holds other files, and nothing is overwritten. Choose another one."
            )
            self._put(_MANIFEST, self._manifest({}))
            return
        self._read(there[_MANIFEST], self._require_same)
        if _LEDGER in there:
            self.known = self._read(there[_LEDGER], _ledger)
        self._results = {name: file for name, file in there.items() if name.endswith(".parquet")}

    def is_done(self, shard: Shard) -> bool:
        """Whether the result of a shard is there, whole, and of the state in which the shard is."""
        file = self._results.get(result_name(shard.name))
        if file is None:
            return False
        done = self.known.get(shard.name)
        if done is None or done.reason or done.size != file.size:
            done = self._said(file)  # It was put, and the row was not yet written.
            if done is not None:
                self.known[shard.name] = done
        return done is not None and done.stamp == shard.stamp and not done.passing

    def others(self, shards: Sequence[Shard]) -> int:
        """How many results are of shards that are not there any more."""
        return len(self._results.keys() - {result_name(shard.name) for shard in shards})

    def note(self, done: Iterable[Done]) -> None:
        """Write the rows of all shards that are known."""
        self.known |= {one.shard: one for one in done}
        rows = [[getattr(one, name) for name in _COLUMNS] for _, one in sorted(self.known.items())]
        self._put(_LEDGER, lambda path: write_csv(path, _COLUMNS, rows))

    def finish(self, shards: Sequence[Shard]) -> None:
        """Say what the results are in sum."""
        done = [self.known[shard.name] for shard in shards if shard.name in self.known]
        sums = {name: sum(getattr(one, name) for one in done) for name in ("images", "skipped")}
        missing = sum(bool(one.reason) for one in done) + len(shards) - len(done)
        self._put(_MANIFEST, self._manifest({"shards": len(shards), "missing": missing} | sums))

    def _manifest(self, sums: Mapping[str, int]) -> Callable[[Path], None]:
        text = json.dumps({"format": _FORMAT, "of": self.identity, **sums}, indent=1) + "\n"
        return lambda path: write_atomically(path, text)

    def _put(self, name: str, write: Callable[[Path], None]) -> None:
        with tempfile.TemporaryDirectory(prefix="dccm-") as folder:
            write(Path(folder) / name)
            put(Path(folder) / name, f"{self.place}/{name}")

    def _read(self, file: Stored, reader: Callable[[Path], Any]) -> Any:
        with tempfile.TemporaryDirectory(prefix="dccm-") as folder, named_if_broken(Path(file.place), _REPAIR):
            return reader(fetch(file, Path(folder)))

    def _require_same(self, path: Path) -> None:
        manifest = read_json(path)
        known, version = manifest["of"], manifest["format"]
        check(isinstance(known, dict), "it does not say what it is of")
        require(
            version <= _FORMAT, f"{self.place} is of a later version of dccm. Update dccm, or choose another output."
        )
        for name in sorted({*known, *self.identity}):
            before, now = known.get(name, ""), self.identity.get(name, "")
            require(
                before == now,
                f"The output {self.place} holds results with {name} = '{before}', and now it is '{now}'. "
                "Choose another one.",
            )

    def _said(self, file: Stored) -> Done | None:
        with opened_file(file.place) as content:
            said = said_of(content)
        try:
            return replace(filled(Done, said["done"]), size=file.size) if said["of"] == self._job else None
        except UNREADABLE:
            return None


def _ledger(path: Path) -> dict[str, Done]:
    """The rows of `shards.csv`, by shard."""
    known = {}
    for row in read_csv(path, _COLUMNS, _REPAIR, exactly=True):
        numbers: Any = {name: int(row[name]) for name in ("images", "skipped", "passing", "size")}
        known[row["shard"]] = Done(row["shard"], row["stamp"], reason=row["reason"], **numbers)
    return known


def _clear(files: Iterable[Stored]) -> None:
    """What a kill left behind of results that were being put."""
    for file in files:
        Path(file.place).unlink(missing_ok=True)
