"""Runs as released versions wrote them: every later one reads them, and their models give the same clusters."""

import shutil
from pathlib import Path

import pytest

from dccm import Model, RunDirectory, UserError
from dccm.data.synthetic import bars
from dccm.report import write_report
from dccm.runs.contents import RUN_FORMAT
from dccm.runs.description import VERSION
from tests.formats.__main__ import KEPT, METHODS, keep
from tests.formats.described import described

RUNS = sorted(path.parent for path in KEPT.glob("*/*/config.toml"))


def test_every_method_that_was_kept_is_there() -> None:
    assert {run.name for run in RUNS} == METHODS.keys()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.parent.name}-{run.name}")
def test_a_kept_run_is_read_and_its_model_gives_the_same_clusters(run: Path, tmp_path: Path) -> None:
    directory = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    result, assignments = directory.read_result(), directory.read_assignments()
    assert (result.n_images, result.n_clusters) == (24, 3)
    assert (
        Model.load(directory.model).assign(bars(24, side=8).images).clusters.tolist() == assignments.clusters.tolist()
    )
    assert "cluster" in write_report(directory).read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=METHODS)
def today(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A run as it is written now."""
    return request.param, keep(request.param, tmp_path_factory.mktemp("today") / "run")


def test_nothing_of_a_kept_run_is_missing_today_or_of_another_type(today: tuple[str, Path]) -> None:
    method, run = today
    now = described(run)
    for kept in (folder for folder in RUNS if folder.name == method):
        for file, parts in described(kept).items():
            assert parts <= now[file], f"{file} of {kept.parent.name}: {sorted(parts - now[file])} is gone"


def test_what_older_programs_would_refuse_has_a_new_number(today: tuple[str, Path]) -> None:
    """They take no key of a model or of `[run]` that they do not know: a new one is a new format."""
    method, run = today
    now = described(run)
    for file, number in {"model/model.json": f"version: {VERSION}", "config.toml": f"format = {RUN_FORMAT}"}.items():
        same = [kept for kept in RUNS if kept.name == method and _says((kept / file).read_text("utf-8"), number)]
        assert same, f"Nothing of this format of {file} is kept: python -m tests.formats"
        for kept in same:
            assert {part for part in now[file] if part.startswith(_STRICT[file])} == {
                part for part in described(kept)[file] if part.startswith(_STRICT[file])
            }


_STRICT = {"model/model.json": "", "config.toml": "run."}


def _says(text: str, number: str) -> bool:
    return number in text.replace('"', "")


def test_a_run_of_a_later_format_is_refused(tmp_path: Path) -> None:
    directory = RunDirectory(shutil.copytree(RUNS[0], tmp_path / "run"))
    text = directory.config.read_text(encoding="utf-8")
    assert "\nformat = 1\n" in text
    directory.config.write_text(text.replace("\nformat = 1\n", "\nformat = 2\n"), encoding="utf-8")
    with pytest.raises(UserError, match="its format is 2, and this dccm reads up to 1: a later one wrote it"):
        directory.read_config()
