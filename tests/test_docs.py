import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ROWS = [
    [cell.strip().strip("`") for cell in line.strip("|\n").split("|")]
    for line in (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| Equation")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_of_the_paper_map_names_things_that_exist(row: list[str]) -> None:
    _, _, function, file, test = row
    module = importlib.import_module(file.removeprefix("src/").removesuffix(".py").replace("/", "."))
    assert hasattr(module, function)
    test_file, _, test_name = test.partition("::")
    assert f"def {test_name}" in (ROOT / test_file).read_text(encoding="utf-8")


def test_the_paper_map_has_every_equation() -> None:
    text = " ".join(row[0] for row in ROWS)
    assert {int(number) for number in re.findall(r"\((\d+)\)", text)} == {*range(1, 17), 18, 19}


def test_every_setting_that_presets_change_is_explained_in_the_deviations() -> None:
    from dccm.config import preset_settings

    text = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
    for name in preset_settings("dccm", "released", "cifar100"):
        assert name in text or name in ("n_clusters", "image_size"), name


def test_python_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        # A few seconds instead of minutes; the calls are the reader's.
        exec(block.replace("epochs=60", "epochs=1"), {})


def test_commands_and_flags_of_the_readme_exist() -> None:
    from typer.main import get_command

    from dccm.cli import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(?:\.venv/bin/)?dccm (.*)$", text, flags=re.MULTILINE)
    assert lines
    for line in lines:
        words = line.split("#")[0].split()
        known = {option for parameter in commands[words[0]].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, line


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_headings_that_documents_link_to_exist(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        if ":" in file:
            continue
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_anchors_are_those_of_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "# Against `paper`, at equal time\n```sh\n# a comment\n```\n## Scores\n## Scores\n"
    page.write_text(text, encoding="utf-8")
    assert anchors(page) == {"against-paper-at-equal-time", "scores", "scores-1"}


def anchors(path: Path) -> set[str]:
    """The names that GitHub gives the headings of a page: small letters, hyphens for spaces, no punctuation."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    names: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        names.append(f"{name}-{count}" if (count := names.count(name)) else name)
    return set(names)
