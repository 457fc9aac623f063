import errno
import json
from pathlib import Path

import pytest

from dccm.errors import UserError
from dccm.exporting.output import MARK, made_whole, mark


def filled(path: Path, text: str, *, overwrite: bool = False) -> None:
    with made_whole(path, folder=True, overwrite=overwrite) as place:
        (place / "inside.txt").write_text(text)
        mark(place, {"complete": True})


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out"
    with made_whole(path, folder=True) as place:
        assert not path.exists()
        (place / "a").write_text("b")
    assert (path / "a").read_text() == "b"
    assert names_in(path.parent) == ["out"]


def stopped(path: Path, error: BaseException, *, folder: bool = True) -> None:
    with made_whole(path, folder=folder) as place:
        (place / "a" if folder else place).write_text("half")
        raise error


@pytest.mark.parametrize("folder", [True, False])
def test_whatever_stops_it_leaves_nothing_behind(folder: bool, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        stopped(tmp_path / "out", KeyboardInterrupt(), folder=folder)
    assert names_in(tmp_path) == []


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"No room on disk to write .*out; nothing of it is left behind"):
        stopped(tmp_path / "out", OSError(errno.ENOSPC, "No space left on device"))
    assert names_in(tmp_path) == []


def test_a_full_disk_inside_of_a_folder_names_the_folder(tmp_path: Path) -> None:
    full = UserError("No room on disk to write out.partial/data/rows.parquet")
    full.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(UserError, match=r"No room on disk to write [^ ]*/out; nothing of it is left behind"):
        stopped(tmp_path / "out", full)
    with pytest.raises(UserError, match="^Something else$"):
        stopped(tmp_path / "out", UserError("Something else"))
    assert names_in(tmp_path) == []


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("mine")
    with pytest.raises(UserError, match=r"out exists already, .* -o, or replace it with --overwrite"):
        filled(path, "new")
    assert path.read_text() == "mine"


def test_a_link_that_leads_nowhere_is_something_too(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="exists already"):
        filled(tmp_path / "out", "new")
    with pytest.raises(UserError, match="no folder of an earlier export"):
        filled(tmp_path / "out", "new", overwrite=True)
    assert not (tmp_path / "elsewhere").exists()


def test_only_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    own = tmp_path / "photos"
    own.mkdir()
    (own / "mine.jpg").write_text("mine")
    with pytest.raises(UserError, match=r"photos is no folder of an earlier export, so it is not replaced"):
        filled(own, "new", overwrite=True)
    assert names_in(own) == ["mine.jpg"]


def test_an_earlier_export_is_replaced_as_a_whole_and_links_in_it_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "a").write_text("a")
    filled(tmp_path / "out", "old")
    (tmp_path / "out" / "link").symlink_to(precious)
    filled(tmp_path / "out", "new", overwrite=True)
    assert names_in(tmp_path / "out") == [MARK, "inside.txt"]
    assert (tmp_path / "out" / "inside.txt").read_text() == "new"
    assert names_in(precious) == ["a"]
    assert names_in(tmp_path) == ["out", "precious"]


def test_what_fails_while_replacing_leaves_the_old_one(tmp_path: Path) -> None:
    filled(tmp_path / "out", "old")
    with pytest.raises(ZeroDivisionError), made_whole(tmp_path / "out", folder=True, overwrite=True):
        raise ZeroDivisionError
    assert (tmp_path / "out" / "inside.txt").read_text() == "old"


def test_what_a_killed_export_left_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    left = tmp_path / "out.partial"
    left.mkdir()
    (left / "mine").write_text("mine")
    with pytest.raises(UserError, match=r"out.partial is in the way"):
        filled(tmp_path / "out", "new")
    mark(left, {"complete": False})
    filled(tmp_path / "out", "new")
    assert names_in(tmp_path) == ["out"]
    assert json.loads((tmp_path / "out" / MARK).read_text())["complete"] is True
