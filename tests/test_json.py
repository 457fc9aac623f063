"""`docs/json.md` says what commands answer; here they are asked."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from dccm.cli import app
from tests.data.pictures import photos, put
from tests.test_cli import dccm

PAGE = (Path(__file__).parent.parent / "docs" / "json.md").read_text(encoding="utf-8")


def documented(title: str) -> dict[str, set[str]]:
    """The last column of a table, by each name in its first."""
    table = PAGE.split(f"| {title} |")[1].split("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return {name: set(re.findall("`(.*?)`", row[-1])) for row in rows for name in re.findall("`(.*?)`", row[0])}


def commands(group: Any, before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        full = f"{before}{name}"
        found |= commands(command, f"{full} ") if hasattr(command, "commands") else {full: command}
    return found


def test_the_page_has_every_command_that_answers_in_json() -> None:
    answering = {
        name
        for name, command in commands(get_command(app)).items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert answering == set(documented("command"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with photos in two classes, one of them broken and one twice."""
    folder = tmp_path / "photos"
    first, _ = photos(folder / "one", 6), photos(folder / "two", 5, side=16)
    put(folder / "two" / "again.png", (first / "00.png").read_bytes())
    put(folder / "two" / "broken.png", b"nothing")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DCCM_CACHE", str(tmp_path / "cache"))
    return folder


def test_documents_have_the_keys_that_the_page_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, inner = documented("command"), documented("where")

    def answer(*words: str) -> Any:
        assert dccm(*words, "--json", monkeypatch=monkeypatch) == 0
        document = json.loads(capsys.readouterr().out)
        name = next(name for name in keys if " ".join(words).startswith(name))
        first = document[0] if isinstance(document, list) else document
        assert keys[name] >= first.keys() if name in ("predict", "presets") else keys[name] <= first.keys()
        for part in inner.keys() & {name for name, value in first.items() if value and not isinstance(value, str)}:
            assert inner[part] <= (first[part][0] if isinstance(first[part], list) else first[part]).keys()
        return document

    run = answer("cluster", "photos", "-k", "2", "-m", "kmeans", "--class-folders", "-o", "run", "-q")
    assert run["n_skipped"] == run["n_duplicates"] == 1
    assert run == json.loads(Path("run/result.json").read_text())
    assert answer("predict", "run", "photos", "-q")["skipped"][0]["path"] == "two/broken.png"
    assert len(answer("prepare", "photos", "-q")["duplicates"]) == 1
    answer("compare", "run", "run")
    answer("judge", "run", "run", "-q")
    assert Path(answer("report", "run")["report"]).is_file()
    assert answer("corrections", "run", "--export", "changes.jsonl") == {"changes": 0}
    assert answer("export", "run", "--to", "csv", "-q")["output"] == "run.csv"
    for words in ("methods", "datasets", "presets", "encoders", "cache size", "cache list", "cache check"):
        assert isinstance(answer(*words.split()), list)
    assert answer("cache", "clear")["in_use"] == 0
