"""The log of changes in SQLite: each is one transaction, and none is ever altered.

Several processes may read and write it at once. A change counts when its transaction is on the disk; one that was cut
off by a crash never happened.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dccm.corrections.change import Change, Entry, change_from
from dccm.corrections.state import Replay, State, replayed
from dccm.documents import check, named_if_broken, parse_json
from dccm.errors import UserError, require

FORMAT = 1
_APPLICATION = 0x6463636D  # "dccm", in the head of the file.
_REPAIR = "take a sound copy, or move it away to begin anew"
_WAIT = 10.0
"""Seconds that a change waits for another process to finish its own."""
_TABLES = """
CREATE TABLE changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    kind TEXT NOT NULL,
    what TEXT NOT NULL,
    key TEXT UNIQUE
);
CREATE TABLE images (count INTEGER NOT NULL, checksum TEXT NOT NULL);
CREATE TRIGGER no_update BEFORE UPDATE ON changes BEGIN SELECT RAISE(ABORT, 'the log is only appended to'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON changes BEGIN SELECT RAISE(ABORT, 'the log is only appended to'); END;
"""


class CorrectionLog:
    """The changes to the clusters of a run, and the state that they lead to.

    Args:
        path: The file; it is made if it is missing, unless the log is only read.
        state: What the run itself found.
        checksum: Of the images of the run.
        read_only: Whether nothing may be written.
    """

    def __init__(self, path: Path, state: State, checksum: str = "", *, read_only: bool = False) -> None:
        self.path = path
        self._first = state
        self.replay = Replay(state.copy())
        self._lock = threading.RLock()
        with _speaking(path):
            self._database = _opened(path, read_only)
            if not read_only:
                self._prepare(len(state.clusters), checksum)
            self._require_same(len(state.clusters), checksum)
        self.sync()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def current(self) -> Iterator[Replay]:
        """The newest state, which stays as it is inside of the block."""
        with self._lock:
            self.sync()
            yield self.replay

    def sync(self) -> int:
        """Take in what others have written; returns the version."""
        with self._lock, _speaking(self.path):
            for entry in self.entries(self.replay.version):
                self.replay.take(entry)
            return self.replay.version

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """The entries behind a version, the oldest first."""
        return self._read("WHERE number > ? ORDER BY number", (after,))

    def _read(self, which: str, values: tuple[object, ...]) -> Iterator[Entry]:
        with self._lock, _speaking(self.path):
            query = f"SELECT number, time, who, kind, what FROM changes {which}"
            rows = self._database.execute(query, values).fetchall()
        for row in rows:
            with named_if_broken(self.path, _REPAIR):
                entry = _entry(*row)
            yield entry

    def add(self, change: Change, who: str, key: str = "") -> Entry:
        """Write one change; returns it as it stands in the log.

        Args:
            change: What to change.
            who: In whose name.
            key: A word of the asker's own: a change that was written under it already is not written again.
        """
        return self.write([(who, change)], key)[0]

    def made(self, key: str) -> Entry | None:
        """The change that was written under a key."""
        if not key:
            return None
        return next(self._read("WHERE key = ?", (key,)), None)

    def write(self, changes: Sequence[tuple[str, Change]], key: str = "") -> list[Entry]:
        """Write who changed what in one transaction, all or nothing."""
        with self._lock, _speaking(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self.sync()
                known = self.made(key)
                made = [known] if known else [self._insert(change, who, key) for who, change in changes]
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                self._forget_uncommitted()
                raise
            return made

    def _insert(self, change: Change, who: str, key: str) -> Entry:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.replay.check(change)
        cursor = self._database.execute(
            "INSERT INTO changes (time, who, kind, what, key) VALUES (?, ?, ?, ?, ?)",
            (now, who, change.kind, json.dumps(change.document()), key or None),
        )
        entry = Entry(int(cursor.lastrowid or 0), now, who, change)
        self.replay.take(entry)
        return entry

    def _forget_uncommitted(self) -> None:
        """Begin anew where changes were applied that are not written."""
        (last,) = self._database.execute("SELECT coalesce(max(number), 0) FROM changes").fetchone()
        if self.replay.version > last:
            self.replay = replayed(self._first.copy(), self.entries())

    def next_cluster(self) -> int:
        """A number that no cluster ever had, for one that is to be made."""
        with self.current() as replay:
            return replay.highest + 1

    def _prepare(self, count: int, checksum: str) -> None:
        """Make the tables of a new file; who comes second finds them."""
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        if self._version():
            return
        self._database.execute("BEGIN IMMEDIATE")
        if not self._version():
            for statement in _statements(_TABLES):
                self._database.execute(statement)
            self._database.execute("INSERT INTO images VALUES (?, ?)", (count, checksum))
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
        self._database.execute("COMMIT")

    def _version(self) -> int:
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])

    def _require_same(self, count: int, checksum: str) -> None:
        """Refuse corrections of other images, and files of a later version."""
        require(
            0 < self._version() <= FORMAT,
            f"{self.path} has format version {self._version()}, and this dccm reads up to {FORMAT}. Update dccm.",
        )
        with named_if_broken(self.path, _REPAIR):
            self._require_tables()
            known, stored = self._database.execute("SELECT count, checksum FROM images").fetchone()
            check(type(known) is int, "its number of images is none")
        same = known == count and (not checksum or not stored or stored == checksum)
        require(
            same,
            f"{self.path} holds corrections of {known:,} other images than the {count:,} of this run. Move it away, or "
            'take them over by path with "dccm corrections RUN --import".',
        )

    def _require_tables(self) -> None:
        """Refuse what only looks like a table, and any other trigger: they could compute without end."""
        own = "type = 'table' AND name NOT GLOB 'sqlite_*'"
        found = self._database.execute(f"SELECT sql FROM sqlite_master WHERE {own} OR type IN ('trigger', 'view')")
        stored = sorted(_words(str(sql)) for (sql,) in found)
        check(stored == sorted(map(_words, _statements(_TABLES))), "its tables are not those of dccm")


def _entry(number: int, time: object, who: object, kind: object, what: str) -> Entry:
    document = parse_json(what)
    check(isinstance(document, dict), "a change is no object")
    return Entry(number, str(time), str(who), change_from(document | {"kind": kind}))


def _words(statement: str) -> str:
    return " ".join(statement.rstrip(";\n").split())


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit by itself."""
    statement = ""
    for line in script.strip().splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _opened(path: Path, read_only: bool) -> sqlite3.Connection:
    """A connection that begins no transaction by itself."""
    require(path.parent.is_dir(), f'There is no run directory {path.parent}; "dccm cluster" writes one.')
    require(
        read_only or not path.is_symlink(),
        f"{path} is a link, through which nothing is written. Put the file itself into its place.",
    )
    address = f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    return sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False)


@contextmanager
def _speaking(path: Path) -> Iterator[None]:
    """Turn what SQLite says into one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        forbidden = "readonly" in str(error) or "unable to open" in str(error)
        way = "Let yourself write there, or copy the run to where you may" if forbidden else "Try again"
        raise UserError(f"{path} cannot be used now ({error}). Nothing was changed. {way}.") from error
    except sqlite3.Error as error:
        raise UserError(f"{path} is broken ({error}); {_REPAIR}.") from error
