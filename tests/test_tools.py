import re
import tomllib
from pathlib import Path

import pytest
from tools.oldest import FOUND, first_that_passes, minors, read
from tools.release import PLACES, change, following

import dccm

ROOT = Path(__file__).parent.parent


def test_halving_finds_the_first_that_passes_and_asks_little() -> None:
    asked = []

    def passes(version: str) -> bool:
        asked.append(version)
        return int(version) >= 13

    assert first_that_passes([str(number) for number in range(20)], passes) == "13"
    assert len(asked) <= 5
    assert first_that_passes(["1", "2"], lambda version: False) == "2"


def test_of_each_minor_release_the_newest_patch_is_tried() -> None:
    assert minors(["2.0.1", "1.10.0", "1.9.3", "2.0.2", "1.9.1"]) == ["1.9.3", "1.10.0", "2.0.2"]


def test_lower_bounds_are_the_oldest_versions_that_passed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = [project["dependencies"], *project["optional-dependencies"].values()]
    bounds: dict[str, str] = {}
    for line in (line for lines in stated for line in lines):
        if found := re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", line):
            bounds[found.group(1)] = found.group(2)
    for name, oldest in read(FOUND).items():
        assert oldest == bounds[name] or oldest.startswith(f"{bounds[name]}."), name


@pytest.mark.parametrize("place", PLACES)
def test_a_release_finds_the_version_once_in_each_place(place: str, tmp_path: Path) -> None:
    copy = tmp_path / Path(place).name
    copy.write_text((ROOT / place).read_text(encoding="utf-8"), encoding="utf-8")
    change(copy, PLACES[place], r"\g<1>9.8.7\g<2>")
    assert copy.read_text(encoding="utf-8").count("9.8.7") == 1
    assert dccm.__version__ in (ROOT / place).read_text(encoding="utf-8")


def test_a_place_without_a_version_stops_a_release(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(SystemExit, match="has 0 places"):
        change(page, "version", "")
    assert following("0.2.7") == "0.3.0"
