import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from dccm.corrections.change import Change
from dccm.errors import UserError
from tests.corrections.runs import log_at

CLUSTERS = (0, 0, 1, 1)
WRITER = """
import sys
from pathlib import Path
from dccm.corrections.change import Change
from tests.corrections.runs import log_at
log = log_at(Path(sys.argv[1]), 0, 0, 1, 1)
for number in range(10_000):
    entry = log.add(Change(kind="move", images=(0, 1), cluster=(number + 1) % 2), "writer")
    print(entry.number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "corrections.sqlite"


def move(*images: int, to: int) -> Change:
    return Change(kind="move", images=images, cluster=to)


def test_a_log_that_is_opened_again_leads_to_the_same_state(path: Path) -> None:
    log = log_at(path, *CLUSTERS)
    log.add(move(0, to=1), "ann")
    log.add(Change(kind="rename", cluster=1, name="cats"), "bob")
    log.add(Change(kind="undo", change=2), "ann")
    log.close()
    again = log_at(path, *CLUSTERS)
    assert again.replay.state.clusters.tolist() == [1, 0, 1, 1]
    assert again.replay.state.groups.names == {}
    assert [(entry.number, entry.who, entry.change.kind) for entry in again.entries()] == [
        (1, "ann", "move"),
        (2, "bob", "rename"),
        (3, "ann", "undo"),
    ]


def test_two_at_once_see_what_the_other_changes(path: Path) -> None:
    one, other = log_at(path, *CLUSTERS), log_at(path, *CLUSTERS)
    one.add(move(0, to=1), "ann")
    assert other.sync() == 1
    other.add(Change(kind="merge", clusters=(0, 1), cluster=0), "bob")
    with pytest.raises(UserError, match="no cluster 1 any more"):
        one.add(move(0, to=1), "ann")
    assert one.replay.state.clusters.tolist() == other.replay.state.clusters.tolist() == [0, 0, 0, 0]


def test_an_undo_of_what_is_not_the_last_change_any_more_is_refused(path: Path) -> None:
    one, other = log_at(path, *CLUSTERS), log_at(path, *CLUSTERS)
    one.add(move(0, to=1), "ann")
    other.add(move(1, to=1), "bob")
    with pytest.raises(UserError, match="somebody else made a change"):
        one.add(Change(kind="undo", change=1), "ann")


def test_several_changes_are_written_together_or_not_at_all(path: Path) -> None:
    log = log_at(path, *CLUSTERS)
    with pytest.raises(UserError, match="no cluster 9"):
        log.write([("ann", move(0, to=1)), ("ann", move(1, to=9))])
    assert log.replay.state.clusters.tolist() == list(CLUSTERS)
    assert list(log.entries()) == []
    assert log.add(move(0, to=1), "ann").number == 1


def test_a_change_that_is_offered_twice_under_one_key_is_made_once(path: Path) -> None:
    log = log_at(path, *CLUSTERS)
    first = log.add(move(0, to=1), "ann", "k1")
    log.add(move(1, to=1), "ann", "k2")
    assert log.add(move(0, to=1), "ann", "k1") == first
    assert log.sync() == 2


def test_the_log_is_only_appended_to(path: Path) -> None:
    log_at(path, *CLUSTERS).add(move(0, to=1), "ann")
    database = sqlite3.connect(path)
    for statement in ("UPDATE changes SET who = 'eve'", "DELETE FROM changes"):
        with pytest.raises(sqlite3.IntegrityError, match="only appended to"):
            database.execute(statement)


def test_corrections_of_other_images_are_refused(path: Path) -> None:
    log_at(path, *CLUSTERS, checksum="aa").close()
    with pytest.raises(UserError, match="4 other images than the 3"):
        log_at(path, 0, 1, 1)
    with pytest.raises(UserError, match="other images"):
        log_at(path, *CLUSTERS, checksum="bb")
    log_at(path, *CLUSTERS, checksum="aa").close()


def test_a_file_that_is_no_log_is_named_in_one_sentence(path: Path) -> None:
    path.write_bytes(b"this is no database, but it is long enough to be taken for one" * 20)
    with pytest.raises(UserError, match=r"corrections\.sqlite is broken"):
        log_at(path, *CLUSTERS)


def test_a_place_where_nothing_can_be_written_is_named_with_a_way_out(path: Path) -> None:
    path.mkdir()
    with pytest.raises(UserError, match="Let yourself write there, or copy the run"):
        log_at(path, *CLUSTERS)


def test_a_log_that_another_program_holds_is_waited_for_and_then_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dccm.corrections.log._WAIT", 0.1)
    log = log_at(path, *CLUSTERS)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match="Nothing was changed. Try again"):
        log.add(move(0, to=1), "ann")
    assert log.sync() == 0  # Reading goes on meanwhile.
    holder.execute("ROLLBACK")
    assert log.add(move(0, to=1), "ann").number == 1


def test_a_log_of_a_later_version_is_refused(path: Path) -> None:
    log_at(path, *CLUSTERS).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.commit()
    with pytest.raises(UserError, match="format version 99"):
        log_at(path, *CLUSTERS)


def test_a_log_that_does_not_fit_names_the_change(path: Path) -> None:
    log_at(path, *CLUSTERS).close()
    database = sqlite3.connect(path)
    database.execute(
        "INSERT INTO changes (time, who, kind, what) VALUES ('', '', 'move', '{\"images\": [77], \"cluster\": 0}')"
    )
    database.commit()
    with pytest.raises(UserError, match="no image"):
        log_at(path, *CLUSTERS)


def test_threads_that_write_at_once_lose_nothing(path: Path) -> None:
    log = log_at(path, *CLUSTERS)

    def write() -> None:
        for number in range(10):
            log.add(move(0, to=number % 2), "ann")

    threads = [Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.sync() == 40


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_writer_that_is_killed_leaves_every_change_that_it_was_told_of_and_no_half_one(path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert writer.stdout is not None
    told = [int(writer.stdout.readline()) for _ in range(20)]
    time.sleep(0.013)
    writer.kill()
    told += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    log = log_at(path, *CLUSTERS)
    assert log.replay.version in (told[-1], told[-1] + 1)
    first, second = log.replay.state.clusters[:2].tolist()
    assert first == second == log.replay.version % 2  # Both images of a change, or neither.
