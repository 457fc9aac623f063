from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch.utils.data import TensorDataset

import dccm
from dccm import DCCM
from dccm.data.images import ImageSet
from dccm.data.synthetic import bars
from dccm.errors import UserError

QUICK = {"mini_batch": 4, "batch_size": 50, "critic_positions": 2, "uses": 1, "starts": 1}


def estimator(**arguments: Any) -> DCCM:
    defaults: dict[str, Any] = {"n_clusters": 3, "epochs": 2, "settings": QUICK, "random_state": 0, "device": "cpu"}
    return DCCM(**(defaults | arguments))


@pytest.fixture(scope="module")
def found() -> ImageSet:
    return bars(45, side=8, classes=3)


@pytest.fixture(scope="module")
def fitted(found: ImageSet) -> DCCM:
    return estimator().fit(found.images)


def cannot_apply(checked: BaseEstimator) -> dict[str, str]:
    """The shared checks that cannot apply to images, each with its reason."""
    one = "asks for a single cluster, which is refused: K must be at least 2"
    return {
        "check_dont_overwrite_parameters": one,
        "check_methods_subset_invariance": f"{one}; the same is tested here with three clusters",
        "check_fit2d_1feature": one,
        "check_fit2d_predict1d": one,
        "check_clustering": "wants Gaussian blobs of two numbers a sample told apart; those are no images",
    }


@parametrize_with_checks([estimator()], expected_failed_checks=cannot_apply)  # type: ignore[untyped-decorator]
def test_scikit_learn_contract(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


def test_fit_gives_labels_history_and_model(fitted: DCCM, found: ImageSet) -> None:
    assert fitted.labels_.shape == (45,)
    assert set(fitted.labels_) <= {0, 1, 2}
    assert len(fitted.history_) == fitted.n_iter_ == 2
    assert np.array_equal(fitted.predict(found.images), fitted.labels_)


def test_fit_predict_equals_labels(fitted: DCCM, found: ImageSet) -> None:
    assert np.array_equal(clone(fitted).fit_predict(found.images), fitted.labels_)


def test_one_image_gets_the_same_answer_alone_and_in_any_batch(fitted: DCCM, found: ImageSet) -> None:
    together = fitted.predict_proba(found.images)
    for number in range(10):
        alone = fitted.predict_proba(found.images[number : number + 1])
        np.testing.assert_allclose(alone[0], together[number], atol=1e-5)
        assert alone.argmax() == together[number].argmax()


def test_fit_leaves_the_arguments_alone_and_what_it_learns_ends_in_an_underscore(found: ImageSet) -> None:
    fresh = estimator()
    before = dict(vars(fresh))
    fresh.fit(found.images)
    learnt = set(vars(fresh)) - set(before)
    assert {name: vars(fresh)[name] for name in before} == before
    assert all(name.endswith("_") or name.startswith("_") for name in learnt)


def test_a_single_feature_and_a_flat_list_are_handled_as_scikit_learn_wants() -> None:
    rows = np.random.default_rng(0).random((20, 1))
    assert estimator(n_clusters=2).fit(rows).labels_.shape == (20,)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        estimator(n_clusters=2).fit(rows).predict(rows[:, 0])


def test_floats_in_0_to_1_and_grey_without_a_channel_axis_are_the_same_images(fitted: DCCM, found: ImageSet) -> None:
    expected = fitted.predict(found.images)
    assert np.array_equal(fitted.predict(found.images / 255), expected)
    assert np.array_equal(fitted.predict(found.images[..., 0]), expected)


def test_a_path_is_read(fitted: DCCM, found: ImageSet, tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", found.images)
    assert np.array_equal(fitted.predict(tmp_path / "images.npy"), fitted.labels_)
    assert np.array_equal(fitted.predict(str(tmp_path / "images.npy")), fitted.labels_)


def test_tensors_and_data_sets_are_the_same_images(fitted: DCCM, found: ImageSet) -> None:
    tensor = torch.from_numpy(found.images).permute(0, 3, 1, 2)
    assert found.labels is not None
    assert np.array_equal(fitted.predict(tensor), fitted.labels_)
    assert np.array_equal(fitted.predict(TensorDataset(tensor, torch.from_numpy(found.labels))), fitted.labels_)
    assert np.array_equal(fitted.predict(found), fitted.labels_)


def test_a_list_of_files_is_read(fitted: DCCM, found: ImageSet, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.png" for name in found.names]
    for path, image in zip(paths, found.images):
        Image.fromarray(image[..., 0]).save(path)
    assert np.array_equal(fitted.predict(paths), fitted.labels_)
    assert np.array_equal(fitted.predict(tmp_path), fitted.labels_)


def test_flattened_images_are_taken_as_squares(found: ImageSet) -> None:
    rows = found.images.reshape(45, -1).astype(float) * 3 - 7
    by_rows = estimator().fit(rows)
    assert by_rows.model_.shape == (1, 8, 8)
    assert np.array_equal(by_rows.predict(rows), by_rows.labels_)


@pytest.mark.parametrize("flat", [False, True])
def test_a_saved_estimator_predicts_the_same(found: ImageSet, flat: bool, tmp_path: Path) -> None:
    images = found.images.reshape(45, -1) if flat else found.images
    first = estimator().fit(images)
    first.save(tmp_path / "model")
    loaded = DCCM.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.predict(images), first.labels_)
    assert loaded.n_clusters == 3
    assert clone(loaded).fit(images).labels_.tolist() == first.labels_.tolist()


def test_images_are_brought_to_the_size_that_was_asked_for(found: ImageSet) -> None:
    assert estimator(image_size=12).fit(found.images).model_.shape == (1, 12, 12)


def test_prediction_before_fit_is_refused() -> None:
    with pytest.raises(NotFittedError):
        estimator().predict(np.zeros((2, 8, 8), dtype=np.uint8))


@pytest.mark.parametrize(
    ("arguments", "count", "words"),
    [
        ({"n_clusters": 1}, 10, "n_clusters must be at least 2, got 1"),
        ({"n_clusters": 11}, 10, "n_clusters must not exceed the number of images, 10, got 11"),
        ({"n_clusters": 2}, 3, "mini_batch must not exceed the number of images, 3, got 4"),
        ({"preset": "papre"}, 10, "Did you mean 'paper'"),
        ({"settings": {"lr": 1}}, 10, "No setting 'lr'"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(arguments: dict[str, Any], count: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        estimator(**arguments).fit(np.zeros((count, 8, 8), dtype=np.uint8))


def test_rows_are_refused_by_a_model_of_images(fitted: DCCM, found: ImageSet) -> None:
    with pytest.raises(ValueError, match=r"features|rows"):
        fitted.predict(found.images.reshape(45, -1))


def test_progress_is_shown_when_asked_for(found: ImageSet, capsys: pytest.CaptureFixture[str]) -> None:
    estimator(verbose=True).fit(found.images)
    assert "epoch 2/2  100%" in capsys.readouterr().err


def test_public_names_exist_and_unknown_ones_do_not() -> None:
    assert all(hasattr(dccm, name) for name in dccm.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dccm.nothing
