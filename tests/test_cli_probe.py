"""The command that scores frozen features."""

import json
from pathlib import Path

import numpy as np
import pytest

from dccm.data.synthetic import bars
from tests.data.published.official_files import write_cifar100
from tests.test_cli import QUICK, dccm, refused

FOUND = bars(60, side=8, classes=3)
SPLITS = np.repeat(["train", "test"], [40, 20])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probed")
    np.savez(folder / "bars.npz", images=FOUND.images)
    with pytest.MonkeyPatch.context() as patch:
        words = ["cluster", folder / "bars.npz", "-k", 3, "-o", folder / "run", *QUICK]
        assert dccm(*words, monkeypatch=patch) == 0
    return folder / "run"


@pytest.fixture
def split(tmp_path: Path) -> Path:
    np.savez(tmp_path / "split.npz", images=FOUND.images, labels=np.asarray(FOUND.labels), splits=SPLITS)
    return tmp_path / "split.npz"


def test_both_layers_are_scored_on_the_test_images(
    finished: Path, split: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dccm("probe", finished, split, "--json", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert (result["train_images"], result["test_images"]) == (40, 20)
    assert set(result["accuracy"]) == {"conv", "y"}
    assert result["accuracy"]["conv"] > 0.6
    assert "probe  100%" in said.err
    assert dccm("probe", finished, split, "--layer", "y", "--quiet", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines() == [
        "Learnt from 40 images; share of 20 others classified right:",
        f"y                 {result['accuracy']['y']:.4f}",
    ]


def test_images_without_a_split_are_split_by_share_and_seed(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "whole.npz"
    np.savez(source, images=FOUND.images, labels=np.asarray(FOUND.labels))
    words: list[object] = ["probe", finished, source, "--layer", "y", "--quiet"]
    assert "not split into train and test. Draw" in refused(words, capsys, monkeypatch)
    assert dccm(*words, "--test-share", 0.5, "--seed", 3, "--json", monkeypatch=monkeypatch) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["train_images"], result["test_images"]) == (30, 30)


def test_images_of_another_size_are_brought_to_the_models(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = bars(60, side=32, channels=3, classes=3)
    np.savez(tmp_path / "large.npz", images=large.images, labels=np.asarray(large.labels), splits=SPLITS)
    assert dccm("probe", finished, tmp_path / "large.npz", "--layer", "y", "-q", monkeypatch=monkeypatch) == 0
    assert "of 20 others" in capsys.readouterr().out


def test_a_data_set_by_name_is_split_as_published_and_may_have_finer_classes(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images, coarse = bars(60, side=32, channels=3).images, np.random.default_rng(0).integers(0, 20, 60).tolist()
    write_cifar100(tmp_path / "cifar-100-python", images, fine=[0] * 60, coarse=coarse, train=50)
    words = ["probe", finished, "cifar100", "--data-root", tmp_path, "--layer", "y", "-q", "--json"]
    shares = []
    for more in ([], ["--variant", "fine"]):
        assert dccm(*words, *more, monkeypatch=monkeypatch) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["train_images"], result["test_images"]) == (50, 10)
        shares.append(result["accuracy"]["y"])
    assert shares[0] < shares[1] == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--layer", "z"], "layer must be conv, y or both, got 'z'"),
        (["--test-share", 2], "test_share must lie between 0 and 1, got 2"),
        (["--variant", "fine"], "variant is for data sets by name"),
    ],
)
def test_wrong_words_are_refused(
    more: list[object],
    words: str,
    finished: Path,
    split: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert words in refused(["probe", finished, split, *more], capsys, monkeypatch)


def test_images_without_labels_are_refused(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "bare.npz", images=FOUND.images, splits=SPLITS)
    assert "The images have no labels" in refused(["probe", finished, tmp_path / "bare.npz"], capsys, monkeypatch)


def test_a_method_without_an_encoder_is_refused_before_images_are_read(
    split: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "kmeans"
    assert dccm("cluster", split, "-k", 3, "-m", "kmeans", "-o", output, monkeypatch=monkeypatch) == 0
    assert "paper's network" not in capsys.readouterr().err
    said = refused(["probe", output, tmp_path / "nowhere"], capsys, monkeypatch)
    assert "The method 'kmeans' has no encoder" in said


@pytest.mark.parametrize(
    ("side", "more", "words"),
    [
        (8, [], "for 32 pixels, preset fast."),
        (40, [], "for 32 pixels, which sees them at 24 x 24, preset fast."),
        (64, [], "for 32 pixels, which sees them at 48 x 48 in squares of 2 x 2, preset fast."),
        (64, ["--preset", "paper", "--set", "width=0.1"], "for 64 pixels, preset paper."),
        (8, ["--set", "starts=2"], "for 32 pixels, preset fast."),
    ],
)
def test_what_is_about_to_happen_names_the_network_of_methods_that_have_one(
    side: int,
    more: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    np.save(tmp_path / "bars.npy", bars(20, side=side, classes=3).images)
    quick = [word for word in QUICK if word != "--quiet"]
    command = ["cluster", tmp_path / "bars.npy", "-k", 3, "-o", tmp_path / "run", *quick, *more]
    assert dccm(*command, monkeypatch=monkeypatch) == 0
    assert f"into 3 clusters by dccm with the paper's network {words}" in capsys.readouterr().err
