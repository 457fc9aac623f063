"""Logs of corrections that somebody made who knows SQLite: one sentence, in time."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from dccm.corrections.change import Change
from dccm.corrections.log import _TABLES, CorrectionLog
from dccm.corrections.state import State
from dccm.errors import UserError
from dccm.runs.contents import Assignments

COLUMNS = "i AS number, '' AS time, '' AS who, 'undo' AS kind, '{}' AS what, '' AS key"
ENDLESS = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {COLUMNS} FROM n"


def state() -> State:
    none = np.zeros(4, bool)
    return State.of_run(Assignments(list("abcd"), np.array([0, 1, 0, 1]), np.ones(4), none, none), 2)


def refusal(path: Path, change: str) -> str:
    """What is said of a log of one change that was altered by a script."""
    log = CorrectionLog(path, state())
    log.add(Change(kind="rename", cluster=0, name="cats"), "somebody")
    log.close()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"DROP TRIGGER no_update; DROP TRIGGER no_delete; {change}")
        with suppress(sqlite3.Error):  # Of a view there are none.
            database.executescript("".join(line for line in _TABLES.splitlines() if "TRIGGER" in line))
    with pytest.raises(UserError) as caught:
        CorrectionLog(path, state(), read_only=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (f"DROP TABLE changes; CREATE VIEW changes AS {ENDLESS}", "its tables are not those of dccm"),
        ("ALTER TABLE changes ADD COLUMN more AS (zeroblob(999999999))", "its tables are not those of dccm"),
        ("DROP TABLE images", "its tables are not those of dccm"),
        ("CREATE TABLE more (a)", "its tables are not those of dccm"),
        (f"CREATE TRIGGER own AFTER INSERT ON changes BEGIN {ENDLESS}; END", "its tables are not those of dccm"),
        ("DELETE FROM images", "cannot unpack non-iterable NoneType object"),
        ("UPDATE images SET count = 'many'", "its number of images is none"),
        (f"UPDATE changes SET what = '{'[' * 100_000}'", "nested deeper than 16 levels"),
        ("UPDATE changes SET what = '[]'", "a change is no object"),
        ("UPDATE changes SET what = x'ff'", "can't decode byte"),
        ("UPDATE changes SET what = '{'", "Expecting property name"),
    ],
)
def test_what_is_no_log_of_ours_is_refused(tmp_path: Path, change: str, reason: str) -> None:
    path = tmp_path / "corrections.sqlite"
    said = refusal(path, change)
    assert said.startswith(f"{path} is broken (")
    assert reason in said
    assert said.endswith("; take a sound copy, or move it away to begin anew.")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links are Unix's")
def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "own.sqlite")) as database:
        database.execute("CREATE TABLE letters (text)")
    (tmp_path / "corrections.sqlite").symlink_to("own.sqlite")
    before = (tmp_path / "own.sqlite").read_bytes()
    with pytest.raises(UserError, match="is a link, through which nothing is written"):
        CorrectionLog(tmp_path / "corrections.sqlite", state())
    assert (tmp_path / "own.sqlite").read_bytes() == before


def test_a_cluster_of_a_number_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    what = '{"cluster": 1000000000, "name": "", "images": [0]}'
    said = refusal(tmp_path / "a.sqlite", f"UPDATE changes SET kind = 'create', what = '{what}'")
    assert "No new cluster can have the number 1000000000: they end at 99999. Take a lower one." in said


def test_a_change_of_no_kind_is_refused(tmp_path: Path) -> None:
    assert "No kind of change 'x'" in refusal(tmp_path / "a.sqlite", "UPDATE changes SET kind = 'x'")
