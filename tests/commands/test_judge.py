import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dccm import UserError, cli
from dccm.commands.cluster import cluster
from dccm.commands.judge import judge
from dccm.data.synthetic import bars
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import read_judgement, write_judgement
from tests.commands.test_cluster import Notes

FOUND = bars(60, side=8)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures, and a run on them."""
    place = tmp_path_factory.mktemp("judged")
    (place / "images").mkdir()
    for number, image in enumerate(FOUND.images):
        Image.fromarray(image.squeeze()).save(place / "images" / f"{number:02d}.png")
    settings = {"image_size": 8, "encoder": "scratch"}
    cluster(place / "images", 4, "kmeans", output=place / "run", settings=settings, cache=place / "cache")
    return place


@pytest.fixture
def run(made: Path) -> Iterator[Path]:
    """The run as it was at first."""
    path = made / "run" / "judgement.json"
    before = path.read_bytes()
    yield made / "run"
    path.write_bytes(before)


def test_a_run_is_judged_when_it_ends(run: Path) -> None:
    judged = read_judgement(RunDirectory(run).judgement)
    assert judged is not None
    assert (judged.images, judged.perturbed, len(judged.unmoved_of), judged.again) == (60, 60, 4, [])
    assert judged.unmoved is not None
    assert judged.beyond_chance is not None
    assert 0 < judged.beyond_chance <= judged.unmoved <= 1
    assert judged.silhouette == pytest.approx(
        np.average([value or 0 for value in judged.silhouettes], weights=sizes(run)), abs=1e-6
    )


def sizes(run: Path) -> np.ndarray:
    return np.bincount(RunDirectory(run).read_assignments().clusters, minlength=4)


def test_an_older_run_is_judged_from_its_files_to_the_same_numbers(made: Path, run: Path) -> None:
    directory = RunDirectory(run)
    known = read_judgement(directory.judgement)
    directory.judgement.unlink()
    assert judge(run, cache=made / "cache").judgement == known == read_judgement(directory.judgement)


def test_what_is_known_is_not_measured_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.commands.judge._measured", None)
    assert judge(run).judgement == read_judgement(RunDirectory(run).judgement)


def test_without_its_images_a_run_is_judged_by_its_features_and_a_word_says_so(made: Path, run: Path) -> None:
    directory, notes = RunDirectory(run), Notes()
    known = read_judgement(directory.judgement)
    directory.judgement.unlink()
    (made / "images").rename(made / "elsewhere")
    try:
        judged = judge(run, cache=made / "cache", watcher=notes).judgement
    finally:
        (made / "elsewhere").rename(made / "images")
    assert known is not None
    assert (judged.silhouette, judged.unmoved, judged.sureness) == (known.silhouette, None, None)
    assert "So predictions and perturbed images are left out." in notes.said[-1]
    assert judge(run, cache=made / "cache").judgement == known  # As soon as they are back.


def test_another_seed_is_run_compared_and_kept(made: Path, run: Path) -> None:
    notes = Notes()
    judged = judge(run, again=True, cache=made / "cache", watcher=notes).judgement
    (other,) = judged.again
    assert (other.run, other.seed, other.images, len(other.found)) == ("run-seed1", 1, 60, 4)
    assert "One more run, with seed 1" in notes.said[0]
    assert "as the first one took" in notes.said[0]
    assert RunDirectory(made / "run-seed1").read_result().seed == 1
    assert judge(run, made / "run-seed1").judgement == judged  # A run that is compared twice is kept once.
    (made / "run-seed2").mkdir()
    (made / "run-seed2" / "something").write_text("")
    with pytest.raises(UserError, match="run-seed2"):
        judge(run, again=True, cache=made / "cache")


def test_a_run_beside_itself_agrees_in_full(run: Path) -> None:
    (other,) = judge(run, run).judgement.again
    assert (other.ari, other.nmi, other.found) == (1.0, 1.0, [1.0] * 4)


def test_wrong_combinations_and_other_images_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not both"):
        judge(run, run, again=True)
    with pytest.raises(UserError, match="Add --again"):
        judge(run, output=tmp_path / "new")
    made = cluster(bars(20, side=8), 2, "kmeans", output=tmp_path / "other")
    with pytest.raises(UserError, match="has no image of this run"):
        judge(run, made.directory.path)
    with pytest.raises(UserError, match="cannot be made again"):
        judge(made.directory.path, again=True)


def test_the_command_prints_words_or_json(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory(run)
    known = read_judgement(directory.judgement)
    assert known is not None
    write_judgement(directory.judgement, replace(known, beyond_chance=0.9, unmoved=0.95))
    for flags in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["dccm", "judge", str(run), "--quiet", *flags])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
    text, _, document = capsys.readouterr().out.rpartition("\n{")
    assert "perturbation   0.900  good\n  95.0 % of 60 images kept their cluster" in text
    assert "But: " in text
    assert json.loads("{" + document)["beyond_chance"] == 0.9
