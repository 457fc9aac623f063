import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dccm.errors import UserError
from dccm.files import amount, csv_lines, read_csv, write_atomically, write_csv
from tests.support import few_examples

cells = st.text(st.sampled_from("a,\"'\r\n\t\0 é\udcff") | st.characters(exclude_categories=["Cs"]), min_size=1)


@few_examples
@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_any_text_comes_back_from_csv(rows: list[tuple[str, str]]) -> None:
    text = "".join(csv_lines(rows))
    assert [tuple(row) for row in csv.reader(io.StringIO(text, newline=""))] == rows


def test_lines_of_csv_end_with_a_line_feed_alone() -> None:
    assert list(csv_lines([("a", 1), ("b\r\n", 2.5)])) == ["a,1\n", '"b\r\n",2.5\n']


def rows_of(path: Path, content: str | bytes, exactly: bool = False) -> list[dict[str, str]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_csv(path, ("path", "label"), "write it anew", exactly=exactly))


def test_names_of_any_bytes_and_any_length_come_back_from_a_file(tmp_path: Path) -> None:
    names = [os.fsdecode(b"latin \xe9.png"), "x" * 200_000, 'two\nlines, "quoted"\r.png', ""]
    write_csv(tmp_path / "a.csv", ("path", "label"), ((name, 1) for name in names))
    assert [row["path"] for row in read_csv(tmp_path / "a.csv", ("path",), "write it anew")] == names
    assert csv.field_size_limit() == 131_072  # The limit is the whole process's.


def test_people_may_write_other_columns_in_any_order_and_leave_out_what_is_empty(tmp_path: Path) -> None:
    found = rows_of(tmp_path / "a.csv", "\ufeffsize,path,label\r\n3,a.png,cat\r\n\r\n4,b.png\r\n")
    assert [(row["path"], row["label"]) for row in found] == [("a.png", "cat"), ("b.png", "")]


@pytest.mark.parametrize(
    ("content", "exactly", "reason"),
    [
        ("", False, "its first line names no column 'path' and no column 'label'"),
        ("path,group\n", False, "its first line names no column 'label'"),
        ("path,label\na,b,c\n", False, "a line with 3 values under 2 column names"),
        ('path,label\n"a', False, "unexpected end of data"),
        ("label,path\n", True, "its first line is not path,label"),
        ("path,label\na\n", True, "a line without exactly 2 values"),
    ],
)
def test_a_broken_table_is_named_with_the_way_out(tmp_path: Path, content: str, exactly: bool, reason: str) -> None:
    with pytest.raises(UserError) as caught:
        rows_of(tmp_path / "a.csv", content, exactly)
    assert str(caught.value) == f"{tmp_path / 'a.csv'} is broken ({reason}); write it anew."


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.csv is broken \(No such file or directory\); write it anew\."):
        list(read_csv(tmp_path / "a.csv", ("path",), "write it anew"))


def test_whatever_stops_the_writing_of_a_file_leaves_nothing_half_written(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[str]]:
        yield ("half",)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_csv(tmp_path / "a.csv", ("path",), rows())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (99, "99 bytes"),
        (1500, "1.5 kB"),
        (250_000, "0.2 MB"),
        (7_300_000, "7.3 MB"),
        (2 * 10**9, "2.0 GB"),
    ],
)
def test_amounts_are_never_nothing_unless_they_are(size: int, words: str) -> None:
    assert amount(size) == words


def test_a_table_of_a_million_columns_is_refused_at_once(tmp_path: Path) -> None:
    content = "path,label," + ",".join(["x"] * 1_000_000)
    with pytest.raises(UserError, match="its first line names 1,000,002 columns, more than 1,000"):
        rows_of(tmp_path / "a.csv", f"{content}\n" * 3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes by name are Unix's")
def test_a_pipe_is_no_table(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(UserError, match=r"a\.csv is broken \(not a regular file\); write it anew"):
        list(read_csv(tmp_path / "a.csv", ("path",), "write it anew"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes by name are Unix's")
def test_what_stands_where_a_file_is_written_first_is_neither_followed_nor_waited_for(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    (tmp_path / "a.html.partial").symlink_to("letter")
    (tmp_path / "a.html").symlink_to("letter")
    os.mkfifo(tmp_path / "b.html.partial")
    write_atomically(tmp_path / "a.html", "page")
    write_atomically(tmp_path / "b.html", "page")
    assert (tmp_path / "letter").read_text() == "dear"
    assert {path.name for path in tmp_path.iterdir()} == {"letter", "a.html", "b.html"}
    assert not (tmp_path / "a.html").is_symlink()


def test_no_file_is_put_in_the_place_of_a_device(tmp_path: Path) -> None:
    link = tmp_path / "zeros"
    link.symlink_to("/dev/zero")
    for path in (link, Path("/dev/dccm-was-here")):
        with pytest.raises(UserError, match="device") as caught:
            write_atomically(path, "text")
        assert str(caught.value) == f"Cannot write {path}: it is a device or lies among them. Name another file."
    assert link.is_symlink()
    assert not Path("/dev/dccm-was-here").exists()
