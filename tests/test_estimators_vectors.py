"""The estimator on vectors of a pretrained encoder."""

from pathlib import Path

import numpy as np
import pytest

from dccm.errors import UserError
from dccm.estimators import ImageClusterer
from tests.commands.test_vectors import coloured
from tests.networks.weights import write_weights


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> ImageClusterer:
    weights = write_weights(tmp_path_factory.mktemp("weights") / "own.safetensors")
    clusterer = ImageClusterer(3, method="kmeans", encoder=f"file:{weights}", device="cpu", random_state=0)
    return clusterer.fit(coloured(30).images)


def test_predictions_of_known_images_are_their_labels(fitted: ImageClusterer, tmp_path: Path) -> None:
    images = coloured(30).images
    assert len(set(zip(fitted.labels_.tolist(), coloured(30).labels))) == 3  # type: ignore[arg-type]
    assert np.array_equal(fitted.predict(images), fitted.labels_)
    assert fitted.transform(images[:2]).shape == (2, 1280) == (2, len(fitted.get_feature_names_out()))
    fitted.save(tmp_path / "saved")
    loaded = ImageClusterer.load(tmp_path / "saved", "cpu")
    assert np.array_equal(loaded.predict(images), fitted.labels_)
    assert loaded.settings is not None
    assert loaded.settings["encoder"] == fitted.encoder


def test_methods_that_learn_from_pictures_refuse_an_encoder() -> None:
    with pytest.raises(UserError, match="encoder must be 'scratch' for the method 'rotnet', which turns"):
        ImageClusterer(3, method="rotnet", encoder="efficientnet-lite0").fit(coloured(9).images)


def test_methods_that_need_vectors_refuse_to_do_without_an_encoder() -> None:
    with pytest.raises(UserError, match="encoder must be a pretrained one for the method 'temi', .* got 'scratch'"):
        ImageClusterer(3, method="temi", encoder="scratch").fit(coloured(9).images)
