"""Whatever a stranger put into a folder of results: `dccm reproduce` ends in a sentence, in time, or works."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dccm.cli.live import GridView
from dccm.commands.one_run import make_run
from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets, parse_data_sets
from dccm.experiments.figure import as_label
from dccm.experiments.measure import Measure
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import find_target
from dccm.experiments.worker import Outcome, Work, do
from dccm.training.progress import ignore
from tests.experiments.results_of import finish, opened
from tests.strangers.results import READS, make, make_sound, mutated
from tests.strangers.test_strangers import in_time

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes by name and alarms are Unix's"),
    pytest.mark.filterwarnings("ignore"),
]
FEW, MANY = 5, 400
SPEC = Request(limit=100).spec("kmeans", "digits")
SCORES = {"acc": 0.5, "nmi": 0.25, "ari": 0.125}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sound(tmp_path_factory.mktemp("strangers"))


def outcome(target: str, sound: Path, place: Path, seed: int) -> str:
    """What is wrong with how a harmed folder was taken; nothing if it worked or ended in a sentence."""
    harm = mutated(sound, place, target, seed)
    try:
        with in_time():
            make(target, place / "results")
    except UserError as error:
        return "" if len(str(error)) < 2000 and "\n" not in str(error) else f"{harm}: no sentence, {str(error)[:200]!r}"
    except Exception as error:
        return f"{harm}: {type(error).__name__} {str(error)[:200]}"
    return ""


def _try_all(target: str, sound: Path, place: Path, count: int) -> None:
    wrong: list[str] = []
    for seed in range(count):
        here = place / str(seed)
        here.mkdir()
        wrong += filter(None, [outcome(target, sound, here, seed)])
    print(f"{target}: {count} folders, {len(wrong)} without a sentence", file=sys.stderr)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("target", READS)
def test_harmed_results_end_in_sentences(target: str, sound: Path, tmp_path: Path) -> None:
    _try_all(target, sound, tmp_path, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("target", READS)
def test_hundreds_of_harmed_results_end_in_sentences(target: str, sound: Path, tmp_path: Path) -> None:
    _try_all(target, sound, tmp_path, MANY)


def test_the_sound_results_have_all_that_is_harmed(sound: Path) -> None:
    assert all(list(sound.glob(pattern.rstrip("/"))) for names in READS.values() for pattern in names)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """One finished run."""
    found = opened(tmp_path / "results")
    finish(found, SPEC, SCORES)
    return found


def edited(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scores": SCORES | {"acc": 7.0}}, "scores must be an object of numbers from -1 to 1 with acc, nmi and ari"),
        ({"scores": SCORES | {"acc": float("nan")}}, "scores must be an object of numbers from -1 to 1"),
        ({"scores": {"acc": 0.5}}, "with acc, nmi and ari, or null"),
        ({"cost": {"seconds": -1, "passes": 1, "peak_memory_mb": None}}, "from 0 up"),
        ({"cost": {"seconds": 1, "passes": 1e300, "peak_memory_mb": None}}, "from 0 up"),
        ({"method": "dccm"}, "method must be kmeans, as kmeans-digits-s0-.* says, got 'dccm'"),
        ({"seed": 3}, "seed must be 0"),
        ({"dataset": "cifar10"}, "dataset must be digits, got 'cifar10'"),
        ({"n_images": 60000}, "n_images must be 100 at most, got 60000"),
    ],
)
def test_a_result_that_cannot_be_of_its_run_is_refused(results: Results, changes: dict[str, Any], words: str) -> None:
    assert results.scores(SPEC) == SCORES
    edited(results.run(SPEC).result, **changes)
    with pytest.raises(UserError, match=words):
        results.scores(SPEC)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spec": {"method": "dccm"}}, r"it is of another run than its folder says\); delete .*runs/kmeans-digits"),
        ({"revision": ["a"]}, "revision must be text"),
        ({"wall_seconds": "long"}, "wall_seconds must be a number"),
    ],
)
def test_notes_of_another_run_are_refused(results: Results, changes: dict[str, Any], words: str) -> None:
    path = results.run(SPEC).path / "experiment.json"
    edited(path, noted_by_a_later_version=1)
    assert results.is_finished(SPEC)
    edited(path, **changes)
    with pytest.raises(UserError, match=words):
        results.is_finished(SPEC)


def measure_of(target: str) -> tuple[RunSpec, Measure[Any]]:
    need = next(need for need in find_target(target).needs(Request(datasets=("digits",))) if need.measures)
    return need.spec, need.measures[0]


CURVES = [[0.5] * 18]
MAP = {"classes": ["a"], "tool": "openTSNE", "stages": [{"name": "final", "epoch": 1, "x": [0], "y": [0]}]}


@pytest.mark.parametrize(
    ("target", "document", "words"),
    [
        ("figure1c", {"epoch": [0, 1], "acc": [0.5], "nmi": [0, 0]}, "acc and nmi must be lists of 2 values, got one"),
        ("figure1c", {"epoch": [0], "acc": [7], "nmi": [0]}, r"acc and nmi must lie in \[0, 1\], got 7"),
        ("figure1c", {"epoch": [1, 0], "acc": [0, 0], "nmi": [0, 0]}, "epoch must grow from one to the next"),
        ("figure1c", {"epoch": [], "acc": [], "nmi": []}, "epoch must be numbers from 0 up"),
        ("figure1c", {"epoch": [0], "acc": [float("nan")], "nmi": [0]}, r"must lie in \[0, 1\], got nan"),
        ("figure5", {"epoch": [0], "precision": [[0.5]], "recall": CURVES}, "must be lists of 18 values"),
        (
            "figure5",
            {"epoch": list(range(9)), "precision": CURVES * 9, "recall": CURVES * 9},
            "epoch must be 5 at most",
        ),
        ("figure6a", {"initial": [0.5] * 9, "final": [0.1] * 9}, r"initial and final must lie in \[0, 1\], got 4.5"),
        ("figure3", MAP | {"tool": "\x1b[2J"}, "tool must be openTSNE or scikit-learn"),
        ("figure3", MAP | {"classes": ["a"] * 2001}, "classes must be of 2,000 images at most"),
        ("figure3", MAP | {"stages": MAP["stages"] * 2}, "epoch must grow"),  # type: ignore[operator]
        ("readouts", {"untrained": {}, "trained": {}}, "untrained must be of the scales"),
        ("figure4", {"conv": 2, "y": 0.5}, "conv and y must lie in"),
        ("figure4", {"conv": 0.5}, "y is missing"),
    ],
)
def test_measures_that_cannot_be_are_refused(tmp_path: Path, target: str, document: dict[str, Any], words: str) -> None:
    results, (spec, measure) = opened(tmp_path / "results"), measure_of(target)
    results.run(spec).path.mkdir()
    results.note_measure(spec, measure.name, document)
    with pytest.raises(UserError, match=words):
        results.measured(spec, measure)


def test_reasons_of_a_stranger_act_on_nothing_and_end(results: Results) -> None:
    results.note_failure(SPEC, "\x1b[2J\nowned " + "x" * 200_000)
    reason = results.failure(SPEC)
    assert reason is not None
    assert reason.startswith("\\x1b[2J\\nowned xxx")
    assert len(reason) < 2000
    edited(results.failed / f"{SPEC.key}.json", reason={"a": 1})
    with pytest.raises(UserError, match=r"json is broken \(it has no reason\); delete it"):
        results.failure(SPEC)
    state, said = do(Work(results, DataSets(), make_run), find_need(SPEC), lambda *_: None)
    assert (state, "it has no reason" in said) == ("stopped", True)


def find_need(spec: RunSpec) -> Any:
    needs = find_target("table2").needs(Request(limit=100, datasets=("digits",), methods=("kmeans",)))
    return next(need for need in needs if need.spec == spec)


def test_nothing_that_is_said_of_a_grid_acts_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    GridView().ended(find_need(SPEC), Outcome("failed", "\x1b[2J"))
    assert "\x1b" not in capsys.readouterr().err


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


@pytest.mark.parametrize(
    "stands",
    [lambda path, _: path.write_text("mine"), lambda path, _: path.symlink_to(path), link],
    ids=["file", "loop", "link"],
)
def test_what_stands_in_the_place_of_a_run_gives_way(tmp_path: Path, stands: Callable[[Path, Path], object]) -> None:
    results, other = opened(tmp_path / "results"), tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("mine")
    stands(results.run(SPEC).path, other)
    make_run(SPEC, DataSets(), results, ignore)
    assert results.run(SPEC).result.is_file()
    assert not results.run(SPEC).path.is_symlink()
    assert sorted(path.name for path in other.iterdir()) == ["mine"]


@pytest.mark.parametrize("name", ["runs", "failed", "locks"])
def test_folders_of_results_that_are_none_are_named(results: Results, name: str) -> None:
    folder = getattr(results, name)
    folder.rename(folder.with_suffix(".old"))
    results.open()
    assert folder.is_dir()
    folder.rmdir()
    folder.write_text("")
    with pytest.raises(UserError, match=r"Cannot make .*: File exists. Choose another output folder"):
        results.open()


def test_a_lock_that_is_no_file_ends_in_a_sentence(results: Results) -> None:
    os.mkfifo(results.locks / "page")
    with pytest.raises(UserError, match=r"Cannot write into .*results: it is not a regular file"), results.writing():
        pass


def test_names_of_classes_are_no_formulas() -> None:
    from matplotlib.figure import Figure

    for name in ("$\\foo$", "_hidden", "\x1b[2J", "x" * 200_000, "$a$ and $b", "a_b^c"):
        label = as_label(name)
        assert len(label) < 160
        assert not label.startswith("_")
        canvas = Figure()
        canvas.text(0, 0, label)
        canvas.savefig(os.devnull, format="svg")


def test_names_of_data_sets_that_no_folder_could_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="with a plain name of 100 characters at most") as error:
        parse_data_sets([f"{'x' * 10_000}={tmp_path}"])
    assert len(str(error.value)) < 500
