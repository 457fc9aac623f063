import math
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dccm.documents import filled, named_if_broken, parse_json, parse_toml, read_json, read_json_lines, read_small
from dccm.errors import UserError


class Point(NamedTuple):
    x: float
    y: float = 0.0


@dataclass
class Thing:
    name: str
    count: int
    points: list[Point] = field(default_factory=list)
    table: dict[str, float | None] = field(default_factory=dict)
    size: tuple[int, int] | None = None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 17 + "]" * 17, "nested deeper than 16 levels"),
        ("[" * 100_000, "nested deeper than 16 levels"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested deeper than 16 levels"),
        ("1e999", "a number that is not finite, 1e999"),
        ("[-Infinity]", "a number that is not finite, -Infinity"),
        ("9" * 5000, "a whole number beyond 64 bits"),
        (str(2**63), "a whole number beyond 64 bits"),
        ("{", "property name"),
    ],
)
def test_json_that_is_deep_or_beyond_all_numbers_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = " + "[" * 100_000, "nested deeper than 16 levels"),
        ("a = " + "[" * 17 + "]" * 17, "nested deeper than 16 levels"),
        ("a = 1e999", "a number that is not finite"),
        ("a = inf", "a number that is not finite"),
        (f"a = {2**63}", "a whole number beyond 64 bits"),
        ("a = " + "9" * 5000, "4300 digits"),
    ],
)
def test_toml_that_is_deep_or_beyond_all_numbers_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_toml(text)


def test_what_is_written_here_is_read() -> None:
    assert parse_json("[" * 16 + "]" * 16)
    assert parse_json(f"[{2**63 - 1}, -0.5]") == [2**63 - 1, -0.5]
    assert math.isnan(parse_json("NaN"))


def test_a_small_file_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[" + b" " * 5_000_000 + b"]")
    with pytest.raises(ValueError, match="larger than 4,000,000 bytes"):
        read_json(tmp_path / "a.json")


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n[2]\n')
    assert read_json_lines(tmp_path / "a.jsonl") == [{"a": 1}, [2]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes by name are Unix's")
@pytest.mark.parametrize("kind", ["pipe", "device", "link", "folder"])
def test_only_a_file_is_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/zero")
    found: list[str] = []

    def read() -> None:
        try:
            read_small(path)
        except OSError as error:
            found.append(str(error.strerror))

    thread = threading.Thread(target=read, daemon=True)  # It would wait for ever at a pipe.
    thread.start()
    thread.join(5)
    assert found == ["not a regular file"]


def test_whatever_is_wrong_becomes_a_sentence_with_name_and_way_out(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught, named_if_broken(tmp_path / "a", "take a copy"):
        parse_json("[1,\n 2")
    assert str(caught.value).startswith(f"{tmp_path / 'a'} is broken (Expecting ',' delimiter")
    assert str(caught.value).endswith("; take a copy.")


def test_a_document_becomes_what_has_types() -> None:
    document = {"name": "a", "count": 2, "points": [{"x": 1}, [2, 3]], "table": {"b": None, "c": 1}, "size": [3, 4]}
    assert filled(Thing, document) == Thing("a", 2, [Point(1.0), Point(2.0, 3.0)], {"b": None, "c": 1.0}, (3, 4))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": None}, "name must be text, got None"),
        ({"count": True}, "count must be a whole number, got True"),
        ({"count": 1.0}, "count must be a whole number, got 1.0"),
        ({"other": 1}, "'other' is not among name, count, points, table, size"),
        ({"points": {}}, "points must be a list, got {}"),
        ({"points": [{"y": 1}]}, "points is wrong, x is missing"),
        ({"table": {"b": "c"}}, "table.b must be a number, got 'c'"),
        ({"size": [1, 2, 3]}, r"size must be a list of 2 values, got \[1, 2, 3\]"),
        ({"name": "a" * 10**6, "count": "b" * 10**6}, "count must be a whole number, got 'b{39}$"),
    ],
)
def test_a_value_of_another_type_is_named(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        filled(Thing, {"name": "a", "count": 2} | changes)


@pytest.mark.parametrize("document", [[], None, 1, "text"])
def test_what_is_no_object_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="not an object of name, count, points, table, size"):
        filled(Thing, document)
