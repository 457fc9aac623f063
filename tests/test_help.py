"""What the terminal says to who asks: `dccm` alone, the help of each command, and what the shell completes."""

import os
import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from dccm.cli import app
from tests.test_cli import dccm
from tests.test_json import commands

SCREEN = 40
"""Lines of 80 columns that are seen at once."""

NAMES = sorted(commands(get_command(app)))


def test_alone_it_says_the_three_things_people_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dccm(monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert [line.split()[1] for line in said.splitlines() if line.startswith("  dccm ")] == [
        "cluster",
        "serve",
        "predict",
    ]
    assert len(said.splitlines()) <= 12


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_a_screen_and_shows_an_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert dccm(*name.split(), "-h", monkeypatch=monkeypatch) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith(f"Example: dccm {name}".strip()) for line in lines)


def test_the_list_of_commands_names_each_once_with_a_whole_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert dccm("-h", monkeypatch=monkeypatch) == 0
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    said = {row[0]: row[1] for row in rows if len(row) == 2}
    for name in {name.split()[0] for name in NAMES}:
        assert said[name].endswith(".")
        assert not said[name].endswith("...")


def completed(line: str, **environment: str) -> set[str]:
    """What bash is told for the last word of a line."""
    words = line.split(" ")
    asked = {"_DCCM_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    code = "import sys; sys.argv = ['dccm']\nfrom dccm.cli import app\napp(prog_name='dccm')"
    told = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked | environment, capture_output=True, text=True, check=False
    )
    assert not told.stderr
    return set(told.stdout.split())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dccm cluster -m deep", {"deepcluster"}),
        ("dccm cluster -m dccm --preset f", {"fast", "features"}),
        ("dccm cluster photos --encoder effi", {"efficientnet-lite0"}),
        ("dccm presets paper --dataset cifar100", {"cifar100"}),
        ("dccm cluster photos --set graph_th", {"graph_threshold="}),
        ("dccm cluster photos -m kmeans --set graph_th", set()),
        ("dccm reproduce figure6", {"figure6a", "figure6b"}),
        ("dccm export clusters --to parq", {"parquet"}),
    ],
)
def test_the_shell_completes_names_that_exist(line: str, expected: set[str]) -> None:
    assert completed(line) == expected


def test_usage_errors_are_plain_and_name_what_was_meant(
    capsys: pytest.CaptureFixture[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dccm("clster", "photos", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert "Did you mean 'cluster'?" in said
    assert "\x1b" not in said
