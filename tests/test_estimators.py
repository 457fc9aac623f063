from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch.utils.data import TensorDataset

import dccm
from dccm import DCCM, ImageClusterer
from dccm.data.images import ImageSet
from dccm.data.read import read_images
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.methods import METHODS
from tests.clusterers import KMEANS, QUICK, estimator, files, quick


@pytest.fixture(scope="module")
def image_set() -> ImageSet:
    return bars(45, side=8, classes=3)


@pytest.fixture(scope="module")
def fitted(image_set: ImageSet) -> DCCM:
    return estimator().fit(image_set.images)


def cannot_apply(checked: BaseEstimator) -> dict[str, str]:
    """The shared checks that cannot apply to images, each with its reason."""
    one = "asks for a single cluster, which is refused: K must be at least 2"
    reasons = {
        "check_dont_overwrite_parameters": one,
        "check_methods_subset_invariance": f"{one}; the same is tested here with three clusters",
        "check_fit2d_1feature": one,
        "check_fit2d_predict1d": one,
        "check_fit2d_1sample": one,
    }
    if isinstance(checked, DCCM):
        reasons["check_clustering"] = "wants blobs of two numbers each told apart, which two epochs need not manage"
    return reasons


@parametrize_with_checks([estimator(epochs=1), KMEANS], expected_failed_checks=cannot_apply)  # type: ignore[untyped-decorator]
def test_scikit_learn_contract(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("method", [name for name, kind in METHODS.items() if not kind.needs_vectors])
def test_every_method_fits_predicts_transforms_and_comes_back_from_its_folder(method: str, tmp_path: Path) -> None:
    image_set = bars(24, side=8, classes=3)
    first = quick(method).fit(image_set.images)
    assert first.labels_.shape == (24,)
    assert np.array_equal(first.predict(image_set.images), first.labels_)
    assert first.predict_proba(image_set.images).shape == (24, 3)
    features = first.transform(image_set.images)
    assert len(first.get_feature_names_out()) == features.shape[1]
    first.save(tmp_path / "model")
    loaded = ImageClusterer.load(tmp_path / "model", device="cpu")
    assert (loaded.method, loaded.epochs) == (method, first.epochs)
    assert np.array_equal(loaded.predict(image_set.images), first.labels_)
    assert np.array_equal(loaded.transform(image_set.images), features)


def test_fit_gives_labels_history_and_model(fitted: DCCM, image_set: ImageSet) -> None:
    assert fitted.labels_.shape == (45,)
    assert set(fitted.labels_) <= {0, 1, 2}
    assert len(fitted.history_) == fitted.n_iter_ == 2
    assert np.array_equal(fitted.predict(image_set.images), fitted.labels_)
    assert fitted.names_ == [str(number) for number in range(45)]
    assert fitted.skipped_ == []


def test_fit_predict_equals_labels(fitted: DCCM, image_set: ImageSet) -> None:
    assert np.array_equal(clone(fitted).fit_predict(image_set.images), fitted.labels_)


def test_dccm_is_the_clusterer_with_that_method(fitted: DCCM, image_set: ImageSet) -> None:
    assert "method" not in DCCM().get_params()
    assert DCCM().method == ImageClusterer().method == "dccm"
    same = ImageClusterer(method="dccm", **fitted.get_params()).fit(image_set.images)
    assert np.array_equal(same.labels_, fitted.labels_)


def test_no_preset_is_the_methods_own_default(fitted: DCCM) -> None:
    assert fitted.preset is None
    assert fitted.model_.config.preset == "fast"


def test_one_image_gets_the_same_answer_alone_and_in_any_batch(fitted: DCCM, image_set: ImageSet) -> None:
    together = fitted.predict_proba(image_set.images)
    for number in range(10):
        alone = fitted.predict_proba(image_set.images[number : number + 1])
        np.testing.assert_allclose(alone[0], together[number], atol=1e-5)
        assert alone.argmax() == together[number].argmax()


def test_fit_leaves_the_arguments_alone_and_what_it_learns_ends_in_an_underscore(image_set: ImageSet) -> None:
    fresh = estimator()
    before = dict(vars(fresh))
    fresh.fit(image_set.images)
    learnt = set(vars(fresh)) - set(before)
    assert {name: vars(fresh)[name] for name in before} == before
    assert all(name.endswith("_") or name.startswith("_") for name in learnt)


def test_a_single_feature_and_a_flat_list_are_handled_as_scikit_learn_wants() -> None:
    rows = np.random.default_rng(0).random((20, 1))
    assert estimator(n_clusters=2).fit(rows).labels_.shape == (20,)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        estimator(n_clusters=2).fit(rows).predict(rows[:, 0])


def test_floats_in_0_to_1_and_grey_without_a_channel_axis_are_the_same_images(
    fitted: DCCM, image_set: ImageSet
) -> None:
    expected = fitted.predict(image_set.images)
    assert np.array_equal(fitted.predict(image_set.images / 255), expected)
    assert np.array_equal(fitted.predict(image_set.images[..., 0]), expected)


def test_a_path_is_read(fitted: DCCM, image_set: ImageSet, tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", image_set.images)
    assert np.array_equal(fitted.predict(tmp_path / "images.npy"), fitted.labels_)
    assert np.array_equal(fitted.predict(str(tmp_path / "images.npy")), fitted.labels_)


def test_tensors_data_sets_and_lists_are_the_same_images(fitted: DCCM, image_set: ImageSet) -> None:
    images = image_set.images
    tensor = torch.from_numpy(images).permute(0, 3, 1, 2)
    assert image_set.labels is not None
    data_set = TensorDataset(tensor, torch.from_numpy(image_set.labels))
    pictures = [Image.fromarray(image[..., 0]) for image in images]
    nested = (images / 255).tolist()
    for given in (tensor, data_set, image_set, pictures, iter(pictures), list(images), nested):
        assert np.array_equal(fitted.predict(given), fitted.labels_), type(given)


def test_arrays_of_different_sizes_are_brought_to_one(fitted: DCCM) -> None:
    sizes = [bars(1, side=side).images[0] for side in (8, 16)]
    assert fitted.predict(sizes).shape == (2,)


def test_a_list_of_files_is_read(fitted: DCCM, image_set: ImageSet, tmp_path: Path) -> None:
    paths = files(tmp_path / "photos", image_set.images)
    for given in (paths, np.array([str(path) for path in paths]), tmp_path / "photos"):
        assert np.array_equal(fitted.predict(given), fitted.labels_)


def test_a_data_set_is_known_by_its_name_with_its_own_table_of_the_preset() -> None:
    digits = clone(KMEANS).set_params(n_clusters=10).fit("digits")
    assert digits.labels_.shape == (1797,)
    assert digits.names_[0] == "digits/0000"
    assert digits.model_.config.dataset == "digits"


def test_labels_of_a_folder_with_a_broken_file_can_be_told_apart(image_set: ImageSet, tmp_path: Path) -> None:
    files(tmp_path, image_set.images)
    (tmp_path / "005.png").write_bytes(b"nothing")
    with pytest.warns(UserWarning, match=r"^1 of 45 images cannot be read; the first, 005\.png: .* no row in labels_"):
        clusterer = clone(KMEANS).fit(tmp_path)
    assert len(clusterer.labels_) == len(clusterer.names_) == 44
    assert "005.png" not in clusterer.names_
    assert clusterer.skipped_ == [("005.png", "not an image of a known format")]
    order = [int(name.removesuffix(".png")) for name in clusterer.names_]
    assert np.array_equal(clusterer.predict(image_set.images[order]), clusterer.labels_)


def test_a_list_of_files_with_a_missing_one_is_fitted_with_a_note_of_it(image_set: ImageSet, tmp_path: Path) -> None:
    paths = files(tmp_path, image_set.images)
    with pytest.warns(UserWarning, match=r"^1 of 46 images cannot be read"):
        clusterer = clone(KMEANS).fit([*paths, tmp_path / "gone.png"])
    assert clusterer.names_ == [str(path) for path in paths]
    assert clusterer.skipped_ == [(str(tmp_path / "gone.png"), "No such file or directory")]


@pytest.mark.parametrize("name", ["predict", "predict_proba", "transform"])
def test_answers_for_fewer_images_than_were_given_are_refused(
    fitted: DCCM, image_set: ImageSet, name: str, tmp_path: Path
) -> None:
    first, second = files(tmp_path, image_set.images[:2])
    answer = getattr(fitted, name)
    with pytest.raises(UserError, match=r"2 of 4 images cannot be read; the first, .*gone\.png: No such file"):
        answer([first, tmp_path / "gone.png", second, tmp_path / "lost.png"])
    (tmp_path / "broken.png").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"1 of 3 images .* broken\.png: not an image .*pass what read_images makes"):
        answer(tmp_path)
    assert len(answer(read_images(tmp_path, image_size=8))) == 2


def test_flattened_images_are_taken_as_squares(image_set: ImageSet) -> None:
    rows = image_set.images.reshape(45, -1).astype(float) * 3 - 7
    by_rows = estimator().fit(rows)
    assert by_rows.model_.shape == (1, 8, 8)
    assert np.array_equal(by_rows.predict(rows), by_rows.labels_)
    assert np.array_equal(by_rows.predict(torch.from_numpy(rows)), by_rows.labels_)
    with pytest.raises(UserError, match="X has 48 features, .* expecting 64 .*: the images had another size in fit"):
        by_rows.predict(np.zeros((3, 48)))


def test_images_are_brought_to_the_size_that_was_asked_for(image_set: ImageSet) -> None:
    assert estimator(image_size=12).fit(image_set.images).model_.shape == (1, 12, 12)
    assert clone(KMEANS).set_params(image_size=12).fit(image_set.images.reshape(45, -1)).model_.shape == (1, 12, 12)


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_a_model_of_images_that_are_not_square_takes_files_and_arrays_of_any_size(fit: str, tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 24, 40, 3), dtype=np.uint8)
    clusterer = clone(KMEANS).set_params(settings={"fit": fit}).fit(images)
    assert clusterer.model_.shape == (3, 24, 40)
    assert np.array_equal(clusterer.predict(files(tmp_path / "same", images)), clusterer.labels_)
    others = np.random.default_rng(1).integers(0, 256, (12, 64, 50, 3), dtype=np.uint8)
    features = clusterer.transform(files(tmp_path / "others", others))
    assert np.array_equal(features, clusterer.transform(others))
    assert np.array_equal(features, clusterer.transform(read_images(others, image_size=(24, 40), fit=fit)))  # type: ignore[arg-type]


def test_prediction_before_fit_is_refused() -> None:
    with pytest.raises(NotFittedError):
        estimator().predict(np.zeros((2, 8, 8), dtype=np.uint8))


@pytest.mark.parametrize(
    ("arguments", "count", "words"),
    [
        ({"n_clusters": 1}, 10, "n_clusters must be at least 2, got 1"),
        ({"n_clusters": 11}, 10, "n_clusters must not exceed the number of images, 10, got 11"),
        ({"preset": "papre"}, 10, "Did you mean 'paper'"),
        ({"settings": {"lr": 1}}, 10, "No setting 'lr'"),
        ({"settings": {"fit": "squeeze"}}, 10, "fit must be one of 'crop', 'pad', 'stretch', got 'squeeze'"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(arguments: dict[str, Any], count: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        estimator(**arguments).fit(np.zeros((count, 8, 8), dtype=np.uint8))


def test_few_images_are_taken_in_smaller_mini_batches_and_a_warning_says_so() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    with pytest.warns(UserWarning, match="fewer images than the 4 of a mini-batch, so it takes 2 of them"):
        assert len(estimator(n_clusters=2).fit(images).labels_) == 3


def test_an_unknown_method_and_epochs_of_a_method_without_them_are_refused() -> None:
    images = np.zeros((10, 8, 8), dtype=np.uint8)
    with pytest.raises(UserError, match="No method 'kmean'. Did you mean 'kmeans'"):
        ImageClusterer(method="kmean").fit(images)
    with pytest.raises(UserError, match="epochs must be left out for the method 'kmeans', which has none, got 3"):
        ImageClusterer(method="kmeans", epochs=3).fit(images)


def test_settings_are_checked_before_any_image_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.estimators.read_images", lambda *_, **__: pytest.fail("images were read"))
    with pytest.raises(UserError, match="No setting 'lr'"):
        estimator(settings={"lr": 1}).fit(tmp_path)


def test_numbers_of_numpy_are_numbers(image_set: ImageSet, tmp_path: Path) -> None:
    numbers = {"n_clusters": np.int64(3), "epochs": np.int32(2), "random_state": np.uint8(0), "image_size": np.int64(8)}
    one = estimator(**numbers, settings={name: np.int64(value) for name, value in QUICK.items()})
    one.fit(image_set.images).save(tmp_path)
    assert np.array_equal(DCCM.load(tmp_path, device="cpu").labels_, estimator().fit(image_set.images).labels_)


def test_a_grid_of_numpy_numbers_is_gone_through_by_clones(image_set: ImageSet) -> None:
    for clusters in np.arange(2, 5):
        one = clone(KMEANS).set_params(n_clusters=clusters)
        assert one.fit(image_set.images).predict_proba(image_set.images).shape == (45, clusters)
        assert clone(one).get_params() == one.get_params()


def test_a_clusterer_is_a_step_of_a_pipeline(image_set: ImageSet) -> None:
    pipeline = make_pipeline(clone(KMEANS)).fit(image_set.images)
    assert np.array_equal(pipeline.predict(image_set.images), pipeline[-1].labels_)
    assert pipeline.transform(image_set.images).shape == (45, len(pipeline.get_feature_names_out()))
    assert pipeline.get_feature_names_out()[0] == "imageclusterer0"
    assert pipeline.set_output(transform="default").fit_transform(image_set.images).shape == (45, 64)


def test_rows_and_images_are_not_mixed_up(fitted: DCCM, image_set: ImageSet) -> None:
    rows = image_set.images.reshape(45, -1)
    with pytest.raises(UserError, match=r"The model was trained on images, got rows of numbers\. Reshape them"):
        fitted.predict(rows)
    clusterer = clone(KMEANS).fit(rows)
    with pytest.raises(UserError, match=r"The model was trained on rows of 64 numbers, got images\. Flatten them"):
        clusterer.predict(image_set.images)
    assert clusterer.n_features_in_ == 64
    assert not hasattr(clusterer.fit(image_set.images), "n_features_in_")


def test_rows_of_images_of_another_size_say_what_to_do() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (20, 64)).astype(float)
    fitted = clone(KMEANS).fit(rows)
    with pytest.raises(UserError, match=r"X has 48 features, but ImageClusterer is expecting 64 .* Bring them to that"):
        fitted.predict(rows[:, :48])


def test_progress_is_shown_when_asked_for(
    image_set: ImageSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path, image_set.images)
    estimator(verbose=True).fit(tmp_path)
    told = capsys.readouterr().err
    assert "reading images 45/45" in told
    assert "epoch 2/2  100%" in told


def test_public_names_exist_and_unknown_ones_do_not() -> None:
    assert all(hasattr(dccm, name) for name in dccm.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dccm.nothing
