import os
import re
import sys
from pathlib import Path

import pytest

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.sources.listing import Listing
from dccm.errors import UserError
from tests.data.pictures import noise, photos, png, put, same_pixels, within


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pictures, and room for a list of them."""
    return photos(tmp_path / "photos", 3).parent


def listing(folder: Path, text: str | bytes, name: str = "list.txt") -> Listing:
    return Listing(put(folder / name, text if isinstance(text, bytes) else text.encode()))


def test_paths_are_relative_to_the_list_or_absolute_and_keep_their_order(folder: Path) -> None:
    absolute = str(folder / "photos" / "00.png")
    source = listing(folder, f"photos/02.png\n{absolute}\nphotos/../photos/01.png\n")
    assert source.names == ["photos/02.png", absolute, "photos/../photos/01.png"]
    assert [same_pixels(source, place, noise(number)) for place, number in enumerate((2, 0, 1))] == [True] * 3
    assert source.labels is None


@pytest.mark.parametrize("text", ["photos/00.png\r\nphotos/01.png\r\n", "\n\nphotos/00.png\n  \nphotos/01.png"])
def test_empty_lines_and_line_ends_of_windows_do_no_harm(folder: Path, text: str) -> None:
    assert listing(folder, text).names == ["photos/00.png", "photos/01.png"]


def test_a_mark_of_byte_order_is_no_part_of_the_first_name(folder: Path) -> None:
    assert listing(folder, "\ufeffphotos/00.png\n").names == ["photos/00.png"]
    assert listing(folder, "\ufeffpath,label\nphotos/00.png,a\n", "list.csv").names == ["photos/00.png"]


def test_a_csv_may_hold_classes_and_other_columns(folder: Path) -> None:
    source = listing(folder, 'label,size,path\ncat,3,photos/00.png\n"dog, large",4,photos/01.png\n', "list.csv")
    assert source.names == ["photos/00.png", "photos/01.png"]
    assert source.labels is not None
    assert source.labels.tolist() == ["cat", "dog, large"]


def test_a_csv_may_split_its_images(folder: Path) -> None:
    source = listing(folder, "path,split\nphotos/00.png,train\nphotos/gone.png,train\nphotos/01.png,test\n", "list.csv")
    assert source.splits is not None
    assert source.splits.tolist() == ["train", "test"]
    assert listing(folder, "path\nphotos/00.png\n", "other.csv").splits is None


def test_classes_stay_with_their_images_when_a_file_is_missing(folder: Path) -> None:
    text = "path,label\nphotos/00.png,a\nphotos/gone.png,b\nphotos/02.png,c\nphotos/01.png\n"
    source = listing(folder, text, "list.csv")
    assert source.labels is not None
    assert source.labels.tolist() == ["a", "c", ""]
    assert source.skipped == [("photos/gone.png", "cannot be opened: No such file or directory")]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_odd_names_are_found_in_both_kinds_of_list(folder: Path) -> None:
    for name in ('comma, and "quotes" 🐟.png', "separator\u2028 \x85\x0b.png", " spaces .png"):
        put(folder / name, png())
        assert listing(folder, name + "\n").names == [name]
        quoted = '"' + name.replace('"', '""') + '"'
        assert listing(folder, f"path\n{quoted}\n", "list.csv").names == [name]
        if "," not in name:
            assert listing(folder, f"path\n{name}\n", "list.csv").names == [name]
    put(folder / "line\nbreak.png", png())
    assert listing(folder, 'path\n"line\nbreak.png"\n', "list.csv").names == ["line\nbreak.png"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are always text")
def test_names_that_are_no_text_are_found(folder: Path) -> None:
    put(folder / os.fsdecode(b"latin \xe9.png"), png(5))
    source = listing(folder, b"latin \xe9.png\n")
    assert [os.fsencode(name) for name in source.names] == [b"latin \xe9.png"]
    assert same_pixels(source, 0, noise(5))


@pytest.mark.skipif(sys.platform == "win32", reason="such files are of POSIX systems")
def test_what_is_no_file_is_skipped_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe.png")
    text = "photos/00.png\npipe.png\nphotos\n/dev/zero\n" + "x" * 5_000 + "\n"
    source = within(20, lambda: listing(folder, text))
    assert source.names == ["photos/00.png"]
    reasons = dict(source.skipped)
    assert reasons.pop("x" * 100 + "... (5,000 characters)") == "cannot be opened: File name too long"
    assert reasons == dict.fromkeys(["pipe.png", "photos", "/dev/zero"], "cannot be opened: not a regular file")


def test_a_name_with_a_zero_byte_is_skipped(folder: Path) -> None:
    source = listing(folder, "path\nphotos/00.png\na\0b.png\n", "list.csv")
    assert source.names == ["photos/00.png"]
    [(name, reason)] = source.skipped
    assert name == "a\0b.png"
    assert re.fullmatch("cannot be opened: .*embedded null.*", reason)  # Pythons say it in different words.


def test_a_file_that_is_listed_twice_is_read_twice(folder: Path) -> None:
    source = listing(folder, "photos/00.png\nphotos/00.png\n")
    image_set = prepare(source, Preparation((24, 24)), cache=folder / "cache")
    assert len(image_set.images) == 2
    assert image_set.duplicates == [("photos/00.png", "photos/00.png")]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", b"", "The list .* names no file. Write one path per line"),
        ("a.txt", b"\n \n", "names no file"),
        ("a.csv", b"", "is broken .its first line names no column 'path'.; write a first line 'path'"),
        ("a.csv", b"path,label\n", "names no file"),
        ("a.txt", b"\x89PNG\0\0", "is not a list of paths: it is not text"),
        ("a.txt", b"nowhere.png\n", "names 1 file, and none exists. Paths are relative to the list"),
        ("a.csv", b"file\nx.png\n", "is broken .its first line names no column 'path'.; write a first line 'path'"),
        ("a.csv", b"label,path\nx\n", "is broken .a row names no file in its column 'path'.; write a first line"),
        ("a.csv", b"path\nx.png,cat\n", "is broken .a line with 2 values under 1 column names.; write a first line"),
        ("a.csv", b'path\n"x.png', "is broken .unexpected end of data.; write a first line 'path'"),
        ("a.csv", b"path\n" + b"x" * 200_000, "names 1 file, and none exists"),
    ],
)
def test_lists_that_name_nothing_are_refused(tmp_path: Path, name: str, text: bytes, words: str) -> None:
    with pytest.raises(UserError, match=words):
        listing(tmp_path, text, name)


def test_the_fingerprint_changes_with_the_files_and_with_what_is_missing(folder: Path) -> None:
    text = "photos/00.png\nphotos/01.png\n"
    before = listing(folder, text).fingerprint()
    assert listing(folder, text).fingerprint() == before
    assert listing(folder, text + "photos/02.png\n").fingerprint() != before
    assert listing(folder, text + "gone.png\n").fingerprint() != before
    os.utime(put(folder / "photos" / "00.png", png(9)), ns=(1, 1))
    assert listing(folder, text).fingerprint() != before
