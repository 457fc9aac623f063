import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dccm import UserError, cli
from dccm.commands.compare import Match, Moved, compare
from dccm.runs.contents import Assignments
from dccm.runs.directory import RunDirectory


def run_of(path: Path, names: list[str], clusters: list[int]) -> Path:
    path.mkdir()
    none = np.zeros(len(names), bool)
    found = Assignments(names, np.array(clusters), np.full(len(names), 0.5), none, none)
    RunDirectory(path).write_assignments(found)
    return path


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    first = run_of(tmp_path / "first", ["a", "b", "c", "d", "e"], [0, 0, 1, 1, 2])
    return first, run_of(tmp_path / "second", ["e", "d", "c", "b", "a", "new"], [1, 0, 0, 4, 4, 0])


def test_clusters_are_matched_and_images_by_name(runs: tuple[Path, Path]) -> None:
    found = compare(*runs)
    assert found.matches == [Match(0, 4, 2, 2), Match(1, 0, 2, 2), Match(2, 1, 1, 1)]
    assert (found.images, found.ari, found.nmi, found.moved, found.scores) == (5, 1.0, 1.0, [], [])


def test_images_that_moved_and_clusters_without_a_match_are_named(tmp_path: Path) -> None:
    names = ["a", "b\n", "c", "d"]
    runs = run_of(tmp_path / "first", names, [0, 0, 1, 2]), run_of(tmp_path / "second", names, [5, 7, 7, 7])
    found = compare(*runs)
    assert found.matches[0] == Match(0, 5, 2, 1)
    assert [match.second for match in found.matches].count(None) == 1
    assert Moved("b\n", 0, 7) in found.moved


def test_labels_score_both(runs: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("path,label\na,x\nb,x\nc,y\nd,y\ne,y\n")
    found = compare(*runs, tmp_path / "labels.csv")
    assert [score["acc"] for score in found.scores] == [0.8, 0.8]


def test_runs_of_other_images_are_refused(tmp_path: Path) -> None:
    runs = run_of(tmp_path / "first", ["a"], [0]), run_of(tmp_path / "second", ["b"], [0])
    with pytest.raises(UserError, match="have no image in common. Compare runs of the same images"):
        compare(*runs)


def test_the_command_says_it_in_words_and_as_json(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for flags in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["dccm", "compare", *map(str, runs), *flags])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 0
        said = capsys.readouterr().out
    assert json.loads(said)["matches"][0] == {"first": 0, "second": 4, "images": 2, "shared": 2}
