import errno
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.read import open_source
from dccm.data.sources.folder import Folder
from dccm.errors import UserError
from tests.data.pictures import noise, photos, png, put, rows, same_pixels, within

posix = pytest.mark.skipif(sys.platform == "win32", reason="such files are of POSIX systems")
bytes_for_names = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are always text")

ODD_NAMES = [
    "line\nbreak.png", "carriage\rreturn.png", "both\r\n.png", "comma, 'quote' and \"quotes\".png", "🐟 é ü 漢字.png",
    " leading and trailing .png", "tab\t.png", "-rf.png", "$(touch x).png", "%s{0}.png", "separator\u2028 \x85\x0b.png",
]  # fmt: skip


def test_folders_in_folders_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.png", "a/z.png", "a/b/c/d/deep.png", "a/a.png", "c/1.png"):
        put(tmp_path / name, png())
    expected = ["a/a.png", "a/b/c/d/deep.png", "a/z.png", "b.png", "c/1.png"]
    assert list(Folder(tmp_path).names) == [name.replace("/", os.sep) for name in expected]


def test_names_and_fingerprint_do_not_depend_on_the_order_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos(tmp_path, 5)
    first = Folder(tmp_path)
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: sorted(listed(path), reverse=True))
    second = Folder(tmp_path)
    assert first.names == second.names
    assert first.fingerprint() == second.fingerprint()


def test_each_name_leads_to_its_file(tmp_path: Path) -> None:
    source = Folder(photos(tmp_path, 3))
    assert len(source) == 3
    assert all(same_pixels(source, number, noise(number)) for number in range(3))


def test_the_content_counts_where_the_suffix_says_nothing(tmp_path: Path) -> None:
    put(tmp_path / "no suffix", png())
    put(tmp_path / "picture.dat", png())
    put(tmp_path / "UPPER.PNG", png())
    put(tmp_path / "readme.txt", b"text")
    put(tmp_path / "empty", b"")
    source = Folder(tmp_path)
    assert source.names == ["UPPER.PNG", "no suffix", "picture.dat"]
    assert source.others == 2
    assert source.skipped == []


def test_first_folders_are_classes(tmp_path: Path) -> None:
    for name in ("cat/young/1.png", "cat/2.png", "dog/1.png", "stray.png"):
        put(tmp_path / name, png())
    labels = open_source(tmp_path, class_folders=True).labels
    assert labels is not None
    assert labels.tolist() == ["cat", "cat", "dog", ""]
    assert Folder(tmp_path).labels is None


def test_a_single_class_is_no_class(tmp_path: Path) -> None:
    put(tmp_path / "cat" / "1.png", png())
    with pytest.raises(UserError, match="class_folders wants one folder for each class in .* just one. Leave it out"):
        open_source(tmp_path, class_folders=True)


@posix
def test_links_to_folders_and_files_are_followed(tmp_path: Path) -> None:
    photos(tmp_path / "elsewhere", 2)
    put(tmp_path / "folder" / "own.png", png(7))
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder" / "one.png").symlink_to(tmp_path / "elsewhere" / "01.png")
    source = Folder(tmp_path / "folder")
    assert source.names == ["link/00.png", "link/01.png", "one.png", "own.png"]
    assert same_pixels(source, 2, noise(1))


@posix
def test_links_that_go_round_in_circles_end(tmp_path: Path) -> None:
    photos(tmp_path / "a", 1)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "here").symlink_to(tmp_path / "a")
    (tmp_path / "itself.png").symlink_to(tmp_path / "itself.png")
    source = within(20, lambda: Folder(tmp_path))
    assert source.names == ["a/00.png"]
    assert [(path, "cannot be opened" in reason) for path, reason in source.skipped] == [("itself.png", True)]


@posix
def test_a_folder_that_is_linked_twice_is_entered_once(tmp_path: Path) -> None:
    photos(tmp_path / "real", 2)
    (tmp_path / "second").symlink_to(tmp_path / "real")
    assert Folder(tmp_path).names == ["real/00.png", "real/01.png"]


@posix
def test_a_link_to_nothing_is_skipped_with_a_reason(tmp_path: Path) -> None:
    photos(tmp_path, 1)
    (tmp_path / "gone.png").symlink_to(tmp_path / "nowhere.png")
    source = Folder(tmp_path)
    assert source.names == ["00.png"]
    assert source.skipped == [("gone.png", "cannot be opened: No such file or directory")]


@posix
def test_pipes_sockets_and_devices_are_skipped_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = photos(tmp_path / "photos", 1), tmp_path / "cache"
    os.mkfifo(folder / "pipe.jpg")
    os.mkfifo(folder / "pipe without suffix")
    (folder / "device.png").symlink_to("/dev/zero")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.png")  # A short path: it may have some 100 characters.
        image_set = within(30, lambda: prepare(Folder(folder), Preparation((24, 24)), cache=cache))
    assert image_set.names == ["00.png"]
    names = ("device.png", "pipe.jpg", "socket.png")
    assert image_set.skipped == [(name, "cannot be opened: not a regular file") for name in names]


@posix
def test_a_folder_that_may_not_be_read_is_skipped_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos(tmp_path, 1)
    photos(tmp_path / "locked", 1)
    listed = Path.iterdir

    def refused(path: Path) -> Iterator[Path]:
        if path.name == "locked":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refused)  # Taking away the rights of a folder does not stop root.
    source = Folder(tmp_path)
    assert source.names == ["00.png"]
    assert source.skipped == [("locked/", "the folder cannot be read: Permission denied")]


def test_a_file_that_may_not_be_read_is_skipped_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos(tmp_path / "photos", 2)
    put(tmp_path / "photos" / "no suffix", png())
    opened = Path.open

    def refused(path: Path, *options: object, **more: object) -> object:
        if path.name in ("01.png", "no suffix"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *options, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refused)  # Taking away the rights of a file does not stop root.
    image_set = prepare(Folder(tmp_path / "photos"), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == ["00.png"]
    assert image_set.skipped == [("no suffix", "cannot be opened: Permission denied"), ("01.png", "Permission denied")]


@posix
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_stay_as_they_are(tmp_path: Path, name: str) -> None:
    put(tmp_path / "photos" / name, png(1))
    put(tmp_path / "photos" / f"broken {name}", b"nothing")
    image_set = prepare(Folder(tmp_path / "photos"), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == [name]
    assert [path for path, _ in image_set.skipped] == [f"broken {name}"]
    assert {row["path"]: row["status"] for row in rows(tmp_path / "cache")} == {
        name: "ok",
        f"broken {name}": "skipped",
    }


@bytes_for_names
def test_names_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    names = [b"half \xe6\xbc.png", b"latin \xe9.png", b"\xff\xfe.png"]
    for number, name in enumerate(names):
        put(tmp_path / "photos" / os.fsdecode(name), png(number))
    put(tmp_path / "photos" / os.fsdecode(b"\xff broken.png"), b"nothing")
    image_set = prepare(Folder(tmp_path / "photos"), Preparation((24, 24)), cache=tmp_path / "cache")
    assert [os.fsencode(name) for name in image_set.names] == names
    assert np.array_equal(image_set.images, [noise(number) for number in range(3)])
    assert [os.fsencode(path) for path, _ in image_set.skipped] == [b"\xff broken.png"]
    assert {os.fsencode(row["path"]) for row in rows(tmp_path / "cache")} == {*names, b"\xff broken.png"}


def test_folders_may_be_nested_deeper_than_functions(tmp_path: Path) -> None:
    deep = tmp_path
    try:
        for _ in range(1_200):
            deep = deep / "d"
            deep.mkdir()
        put(deep / "a.png", png())
        assert len(Folder(tmp_path)) == 1
    finally:
        while deep != tmp_path:  # Python cannot remove so deep a tree in one go.
            shutil.rmtree(deep)
            deep = deep.parent


@pytest.mark.parametrize("change", ["content", "name", "new", "gone", "new link to nothing"])
def test_the_fingerprint_changes_when_the_folder_does(tmp_path: Path, change: str) -> None:
    photos(tmp_path, 3)
    before = Folder(tmp_path).fingerprint()
    assert Folder(tmp_path).fingerprint() == before
    match change:
        case "content":
            os.utime(put(tmp_path / "01.png", png(9)), ns=(1, 1))
        case "name":
            (tmp_path / "01.png").rename(tmp_path / "1.png")
        case "new":
            put(tmp_path / "03.png", png(9))
        case "gone":
            (tmp_path / "01.png").unlink()
        case _:
            (tmp_path / "04.png").symlink_to(tmp_path / "nowhere")
    assert Folder(tmp_path).fingerprint() != before


def test_a_folder_that_may_not_be_read_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", forbidden)
    with pytest.raises(
        UserError, match=r"it has 1 file, and none .* \(\.: the folder cannot be read: Permission denied"
    ):
        open_source(tmp_path)


def test_a_folder_without_images_is_refused_with_the_number_of_its_files(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", b"x")
    put(tmp_path / "b.txt", b"x")
    with pytest.raises(
        UserError, match="There is no image in .*: it has 2 files, and none that can be read as one. Give"
    ):
        Folder(tmp_path)
