"""Runs as released versions wrote them: every later one reads them, and their models give the same clusters."""

import shutil
from pathlib import Path

import pytest

from dccm import Model, RunDirectory, UserError
from dccm.data.synthetic import bars
from dccm.report import write_report

RUNS = sorted(path.parent for path in Path(__file__).parent.glob("*/*/config.toml"))


def test_every_method_that_was_kept_is_there() -> None:
    assert {run.name for run in RUNS} == {"dccm", "kmeans"}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.parent.name}-{run.name}")
def test_a_kept_run_is_read_and_its_model_gives_the_same_clusters(run: Path, tmp_path: Path) -> None:
    directory = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    result, assignments = directory.read_result(), directory.read_assignments()
    assert (result.n_images, result.n_clusters) == (24, 3)
    assert (
        Model.load(directory.model).assign(bars(24, side=8).images).clusters.tolist() == assignments.clusters.tolist()
    )
    assert "cluster" in write_report(directory).read_text(encoding="utf-8")


def test_a_run_of_a_later_format_is_refused(tmp_path: Path) -> None:
    directory = RunDirectory(shutil.copytree(RUNS[0], tmp_path / "run"))
    text = directory.config.read_text(encoding="utf-8")
    assert "\nformat = 1\n" in text
    directory.config.write_text(text.replace("\nformat = 1\n", "\nformat = 2\n"), encoding="utf-8")
    with pytest.raises(UserError, match="its format is 2, and this dccm reads up to 1: a later one wrote it"):
        directory.read_config()
