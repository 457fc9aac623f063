from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from dccm import DCCM, ImageClusterer
from dccm.cli import app
from dccm.data.images import ImageSet
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.runs.model import Model
from tests.clusterers import KMEANS, QUICK, estimator, files


@pytest.fixture(scope="module")
def image_set() -> ImageSet:
    return bars(45, side=8, classes=3)


@pytest.fixture(scope="module")
def fitted(image_set: ImageSet) -> DCCM:
    return estimator().fit(image_set.images)


@pytest.mark.parametrize("flat", [False, True])
def test_a_saved_estimator_is_as_it_was(image_set: ImageSet, flat: bool, tmp_path: Path) -> None:
    images = image_set.images.reshape(45, -1) if flat else image_set.images
    first = estimator().fit(images)
    first.save(tmp_path / "model")
    loaded = DCCM.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.predict(images), first.labels_)
    assert loaded.n_clusters == 3
    assert clone(loaded).fit(images).labels_.tolist() == first.labels_.tolist()
    assert np.array_equal(loaded.labels_, first.labels_)
    assert (loaded.history_, loaded.n_iter_) == (first.history_, 2)
    assert (loaded.names_, loaded.skipped_) == (first.names_, first.skipped_)
    assert loaded.get_feature_names_out().tolist() == first.get_feature_names_out().tolist()
    assert getattr(loaded, "n_features_in_", None) == getattr(first, "n_features_in_", None) == (64 if flat else None)


def test_names_and_skipped_files_are_saved_whatever_they_are_called(image_set: ImageSet, tmp_path: Path) -> None:
    paths = files(tmp_path / "photos", image_set.images)
    paths[0] = paths[0].rename(tmp_path / "photos" / 'a, "b"\nc\udcff.png')
    first = clone(KMEANS).fit([*paths, "gone,.png"])
    first.save(tmp_path / "model")
    loaded = ImageClusterer.load(tmp_path / "model")
    assert loaded.names_ == [str(path) for path in paths]
    assert loaded.skipped_ == first.skipped_ != []


def test_a_run_directory_is_loaded_with_its_assignments_and_history(image_set: ImageSet, tmp_path: Path) -> None:
    np.savez(tmp_path / "bars.npz", images=image_set.images)
    sets = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
    arguments = ["cluster", str(tmp_path / "bars.npz"), "-k", "3", "--epochs", "2", "--device", "cpu", "--quiet", *sets]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    loaded = DCCM.load(tmp_path / "run", device="cpu")
    assert np.array_equal(loaded.labels_, loaded.predict(image_set.images))
    assert loaded.labels_.dtype == np.int64
    assert loaded.names_ == [str(number) for number in range(45)]
    assert [record["epoch"] for record in loaded.history_] == [1, 2]
    assert loaded.n_iter_ == 2
    with pytest.raises(UserError, match=r"run holds a run, and its files are not overwritten\. Choose another folder"):
        loaded.save(tmp_path / "run")


def test_a_folder_with_nothing_but_the_model_is_loaded_too(fitted: DCCM, image_set: ImageSet, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    fitted.model_.save(tmp_path / "bare")
    bare = DCCM.load(tmp_path / "bare", device="cpu")
    assert not any(hasattr(bare, name) for name in ("labels_", "names_", "history_", "n_iter_"))
    assert len(bare.get_feature_names_out()) == bare.transform(image_set.images).shape[1]
    bare.save(tmp_path)  # What is left there of another fit is not this one's.
    assert not hasattr(DCCM.load(tmp_path, device="cpu"), "labels_")


def test_a_damaged_history_is_refused(fitted: DCCM, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    (tmp_path / "history.jsonl").write_text("{")
    with pytest.raises(UserError, match=r"history\.jsonl is broken \(.*\); take a sound copy"):
        DCCM.load(tmp_path)


def test_a_model_that_is_loaded_and_saved_again_still_takes_rows(image_set: ImageSet, tmp_path: Path) -> None:
    rows = image_set.images.reshape(45, -1) / 10 - 3
    first = clone(KMEANS).fit(rows)
    first.save(tmp_path / "a")
    Model.load(tmp_path / "a", "cpu").save(tmp_path / "b")
    assert np.array_equal(ImageClusterer.load(tmp_path / "b").predict(rows), first.labels_)


def test_a_model_of_another_method_is_no_dccm(image_set: ImageSet, tmp_path: Path) -> None:
    clone(KMEANS).fit(image_set.images).save(tmp_path)
    with pytest.raises(UserError, match=r"of the method 'dccm', got one of 'kmeans'\. Take ImageClusterer\.load"):
        DCCM.load(tmp_path)
