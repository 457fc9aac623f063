"""A number of clusters that is chosen: by the command, before a run, by the estimator."""

import json
from pathlib import Path

import numpy as np
import pytest

import dccm as package
from dccm.commands.choose_k import choose_k
from dccm.commands.cluster import cluster
from dccm.errors import UserError
from dccm.estimators import ImageClusterer
from dccm.runs.choice import read_choice
from dccm.training.progress import Progress, Stage
from tests.test_cli import dccm, refused


class Listening:
    """Keeps what a command says."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.stages: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def reading(self, done: int, total: int) -> None:
        pass

    downloading = reading

    def training(self, progress: Progress | Stage) -> None:
        self.stages += [progress.what] if isinstance(progress, Stage) else []


def patches(kinds: int = 4, each: int = 20) -> np.ndarray:
    """Noisy pictures of as many kinds: each has its own bright square."""
    random = np.random.default_rng(0)
    images = random.integers(0, 60, (kinds * each, 12, 12, 1), dtype=np.uint8)
    for number in range(kinds * each):
        row, column = divmod(number % kinds, 3)
        images[number, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] = 230
    return images


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Listening]:
    listening = Listening()
    output = tmp_path_factory.mktemp("runs") / "auto"
    cluster(patches(), "auto", "kmeans", output=output, seed=0, watcher=listening)
    return output, listening


def test_a_run_takes_the_number_that_is_chosen_and_says_so(run: tuple[Path, Listening]) -> None:
    output, listening = run
    assert any(text.startswith("K = 4 suggested from 2..8 (runner-up ") for text in listening.said)
    assert "choosing K" in listening.stages
    assert json.loads((output / "result.json").read_text())["n_clusters"] == 4
    choice = read_choice(output / "choice.json")
    assert choice is not None
    assert (choice.suggestion, choice.asked, choice.space, choice.images) == (4, "auto", "pixels", 80)
    assert len(choice.merges) == 3


def test_the_report_shows_the_curve_and_the_tree(run: tuple[Path, Listening]) -> None:
    page = (run[0] / "report.html").read_text(encoding="utf-8")
    assert "K = 4 suggested from 2..8" in page
    assert "Number of clusters: score, of the best, links, separation, stability over 7 clusters" in page
    assert "How the clusters merge: 4 clusters" in page


def test_a_resumed_run_keeps_the_number_that_was_chosen(run: tuple[Path, Listening]) -> None:
    output, listening = run[0], Listening()
    before = (output / "choice.json").read_bytes()
    cluster(patches(), "auto", "kmeans", output=output, seed=0, resume=True, watcher=listening)
    cluster(patches(), None, "kmeans", output=output, seed=0, resume=True, watcher=listening)
    assert "choosing K" not in listening.stages
    assert (output / "choice.json").read_bytes() == before
    with pytest.raises(UserError, match=r"begun with n_clusters = auto, now it is 2..6. Resume without it"):
        cluster(patches(), "2..6", "kmeans", output=output, seed=0, resume=True)


def test_a_run_with_a_given_number_is_not_resumed_with_another_question(tmp_path: Path) -> None:
    cluster(patches(), 4, "kmeans", output=tmp_path / "run")
    assert not (tmp_path / "run" / "choice.json").exists()
    with pytest.raises(UserError, match="begun with n_clusters = a number that was given, now it is auto"):
        cluster(patches(), "auto", "kmeans", output=tmp_path / "run", resume=True)


def test_the_choice_stays_within_a_range_and_a_number_as_text_is_a_number(tmp_path: Path) -> None:
    assert cluster(patches(), "5..7", "kmeans", output=tmp_path / "range").result.n_clusters in (5, 6, 7)
    assert cluster(patches(), "3", "kmeans", output=tmp_path / "text").result.n_clusters == 3


def test_the_command_suggests_writes_and_clusters_nothing(tmp_path: Path) -> None:
    chosen = choose_k(patches(), seed=0, output=tmp_path / "record")
    assert chosen.choice.suggestion == 4
    assert [path.name for path in (tmp_path / "record").iterdir()] == ["choice.json"]
    assert chosen.choice == choose_k(patches(), seed=0).choice
    with pytest.raises(UserError, match="n_clusters must be a range such as 5..30, or auto, to choose from, got 7"):
        choose_k(patches(), "7")


def test_the_command_line_prints_a_curve_or_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "images.npy", patches())
    words = ["choose-k", tmp_path / "images.npy", "-k", "2..6", "--quiet"]
    assert dccm(*words, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert said.startswith("K = 4 suggested from 2..6")
    assert "##  suggested" in said
    assert dccm(*words, "--json", monkeypatch=monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["suggestion"] == 4


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("5..", "n_clusters must be a whole number, a range such as 5..30, or auto, got '5..'"),
        ("30..5", "n_clusters must not fall"),
        ("autoo", "Did you mean 'auto'?"),
        ("2..30", "at most 20 clusters of 80 images, got '2..30'"),
        ("81", "n_clusters must not exceed the number of images, 80, got 81"),
    ],
)
def test_wrong_numbers_end_in_one_sentence_and_exit_code_2(
    wanted: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "images.npy", patches())
    words = ["cluster", tmp_path / "images.npy", "-k", wanted, "-o", tmp_path / "run", "-q"]
    assert expected in refused(words, capsys, monkeypatch)
    assert not (tmp_path / "run").exists()


def test_the_estimator_chooses_too() -> None:
    clusterer = ImageClusterer("2..6", method="kmeans", device="cpu", random_state=0).fit(patches())
    assert len(set(clusterer.labels_.tolist())) == 4
    assert clusterer.choice_ is not None
    assert clusterer.choice_.suggestion == 4
    assert clusterer.n_clusters == "2..6"
    assert ImageClusterer(3, method="kmeans", device="cpu", random_state=0).fit(patches()).choice_ is None


def test_labels_cannot_decide(tmp_path: Path) -> None:
    """The same images with other labels give the same choice."""
    choices = []
    for number, labels in enumerate((np.arange(80) % 4, np.arange(80) // 20)):
        np.savez(tmp_path / f"{number}.npz", images=patches(), labels=labels)
        choices.append(choose_k(str(tmp_path / f"{number}.npz"), "2..6", seed=0).choice)
    assert choices[0] == choices[1]
    assert package.cluster is cluster
