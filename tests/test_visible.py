"""Names of files are strangers' words: nothing in them acts on a terminal or on a page, wherever they are shown."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image

from dccm import cli
from dccm.data.synthetic import bars
from dccm.errors import visible
from dccm.progress import Display
from tests.report.runs import change_result, page_of, write_csv, write_run

EVIL = "\x1b]0;mine\x07\x1b[2J\n0 files skipped\r\u202egnp.exe\u2028\x9b31m\u2066"
ACTING = [letter for letter in set(EVIL) if not letter.isprintable()]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 🐟 日本.png", "plain é 🐟 日本.png"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\u202egpj", "\\u202egpj"),
        (os.fsdecode(b"\xe9"), "\\udce9"),
        ("\x9b", "\\x9b"),
    ],
)
def test_what_acts_is_shown_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_that_are_meant_stay() -> None:
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_progress_shows_names_escaped() -> None:
    stream = io.StringIO()
    Display(stream=stream).say(f"skipped {EVIL}")
    assert not [letter for letter in ACTING if letter in stream.getvalue().removesuffix("\n")]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with names that nobody should have to look at."""
    folder = tmp_path / "photos"
    folder.mkdir()
    image = Image.fromarray(bars(1, side=8).images[0, ..., 0])
    for number in range(3):
        image.save(folder / f"{number}.png")
    (folder / f"{EVIL}.png").write_bytes((folder / "0.png").read_bytes())
    (folder / f"bad{EVIL}.png").write_bytes(b"nothing")
    return folder


def output_of(words: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["dccm", *map(str, words)])
    with suppress(SystemExit):
        cli.main()
    said = capsys.readouterr()
    return said.out + said.err


def test_commands_show_names_escaped(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = output_of(["prepare", photos], monkeypatch, capsys)
    assert "\\x1b[2J\\n0 files skipped" in said
    assert "1 file skipped, 3 duplicates." in said
    said += output_of(["prepare", photos / EVIL], monkeypatch, capsys)
    said += output_of(["report", photos / EVIL], monkeypatch, capsys)
    assert not [letter for letter in ACTING if letter in said.replace("\n", "")]
    assert not [line for line in said.splitlines() if line.startswith("0 files skipped")]


def test_the_report_shows_names_escaped(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    write_csv(run / "skipped.csv", [("path", "reason"), (EVIL, EVIL)])
    rows = (run / "assignments.csv").read_text()
    (run / "assignments.csv").write_text(rows.replace("' onerror='alert(2).png", f'"{EVIL}"').replace("\r\n", "\n"))
    history = (run / "history.jsonl").read_text()
    (run / "history.jsonl").write_text(history.replace('"graph"', '"\\u202egraph\\u001b"'))
    change_result(run, warnings=[EVIL], settings={EVIL: EVIL}, versions={EVIL: EVIL}, method=EVIL)
    page = page_of(run)
    assert not [letter for letter in ACTING if letter in page.text.replace("\n", "")]
    assert any("\\x1b[2J\\n0 files skipped" in title for title in page.titles())
