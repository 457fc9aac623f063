import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GUIDES = sorted(ROOT.glob("docs/*.md"))
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


def blocks(path: Path, language: str) -> list[str]:
    """What stands between the fences of one language."""
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_python_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks(ROOT / page, "python")
    assert examples
    for example in examples:
        # A twentieth of the time; the calls are the reader's.
        exec(example.replace("epochs=3", "epochs=1").replace("load_digits().images", "load_digits().images[:300]"), {})


def test_no_other_page_has_python_that_nothing_runs() -> None:
    pages = [str(path.relative_to(ROOT)) for path in DOCUMENTS if blocks(path, "python")]
    assert pages == ["README.md", "docs/python.md"]


def shell_lines(path: Path) -> list[str]:
    """What follows `dccm` in the shell examples of a page, without comments."""
    text = "\n".join(blocks(path, "sh")).replace("\\\n", " ")
    return [line.split(" #")[0] for line in re.findall(r"^dccm (.*)$", text, flags=re.MULTILINE)]


@pytest.mark.parametrize("path", [ROOT / "README.md", *GUIDES], ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_flags_exist(path: Path) -> None:
    from typer.main import get_command

    from dccm.cli import app

    for line in shell_lines(path):
        command: Any = get_command(app)
        for word in line.split():
            command = getattr(command, "commands", {}).get(word, command)
        known = {option for parameter in command.params for option in parameter.opts}
        given = {word for word in line.split() if re.match(r"--?[a-z]", word)}
        assert command.name in line.split(), line
        assert given - {"--help", "-h"} <= known, line


def test_the_readme_shows_commands_and_stays_short() -> None:
    assert len(shell_lines(ROOT / "README.md")) >= 3
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert GUIDES
    for page in GUIDES:
        assert f"]({page.name})" in index or page.name == "README.md", page.name


def test_every_page_of_the_diary_is_in_its_index() -> None:
    index = (ROOT / "docs" / "lab" / "README.md").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/lab/*.md"):
        assert f"]({page.name})" in index or page.name == "README.md", page.name


def test_the_citation_names_this_version() -> None:
    from dccm import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_headings_that_documents_link_to_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text):
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
