from pathlib import Path

import numpy as np
import pytest

from dccm.data.loader import Bytes
from dccm.data.synthetic import bars
from dccm.methods import METHODS
from dccm.model import Model, make_config
from dccm.run import Fitted, fit

SMALL = {"n_clusters": 3, "batch_size": 24, "mini_batch": 8, "epochs": 4, "learning_rate": 1e-3, "critic_positions": 4}


@pytest.fixture(scope="module")
def images() -> Bytes:
    return bars(48, side=8, classes=3).images


@pytest.fixture(scope="module", params=METHODS)
def fitted(request: pytest.FixtureRequest, images: Bytes) -> Fitted:
    return fit(images, make_config(request.param, overrides=SMALL))


def test_probabilities_and_features_have_the_right_shapes(fitted: Fitted, images: Bytes) -> None:
    probabilities = fitted.model.predict_proba(images)
    assert probabilities.shape == (48, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert fitted.model.transform(images).shape == (48, 64)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(fitted: Fitted, images: Bytes) -> None:
    name = fitted.model.config.method
    again = fit(images, make_config(name, overrides=SMALL))
    other = fit(images, make_config(name, overrides=SMALL | {"seed": 1}))
    assert np.array_equal(again.model.predict_proba(images), fitted.model.predict_proba(images))
    assert again.history == fitted.history
    assert not np.array_equal(other.model.predict_proba(images), fitted.model.predict_proba(images))


def test_an_image_is_predicted_alike_alone_and_in_any_batch(fitted: Fitted, images: Bytes) -> None:
    together = fitted.model.predict_proba(images)
    alone = np.concatenate([fitted.model.predict_proba(images[i : i + 1]) for i in range(len(images))])
    shuffled = np.random.default_rng(0).permutation(len(images))
    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(fitted.model.predict_proba(images[shuffled]), together[shuffled], atol=1e-5)
    assert np.array_equal(alone.argmax(axis=1), together.argmax(axis=1))


def test_a_saved_model_predicts_the_same_bits(fitted: Fitted, images: Bytes, tmp_path: Path) -> None:
    fitted.model.save(tmp_path)
    loaded = Model.load(tmp_path, "cpu")
    assert np.array_equal(loaded.predict_proba(images), fitted.model.predict_proba(images))
    assert np.array_equal(loaded.transform(images), fitted.model.transform(images))


def test_loss_falls(fitted: Fitted) -> None:
    assert fitted.history[-1]["loss"] < fitted.history[0]["loss"]


@pytest.mark.slow
def test_compiled_networks_learn_the_same_but_for_rounding(fitted: Fitted, images: Bytes) -> None:
    name = fitted.model.config.method
    compiled = fit(images, make_config(name, overrides=SMALL | {"compile": True, "epochs": 1}))
    assert compiled.model.method.state_dict().keys() == fitted.model.method.state_dict().keys()
    assert compiled.history[0]["loss"] == pytest.approx(fitted.history[0]["loss"], rel=0.02)
