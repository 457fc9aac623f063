from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.images import ImageSet
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.evaluation import probe as module
from dccm.evaluation.probe import (
    LAYERS,
    Layer,
    ProbeConfig,
    Probed,
    Split,
    layer_features,
    probe,
    probe_encoder,
    split_of,
)
from dccm.methods import METHODS
from dccm.methods.base import encoder_of
from dccm.networks.base import Encoder
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.progress import Stage

QUICK = ProbeConfig(epochs=1, fewest_steps=200)
HALVES = Split(np.arange(0, 400, 2), np.arange(1, 400, 2))


def cloud(dimensions: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (400, dimensions)).astype(np.float32)


def test_classes_that_no_line_parts_are_learnt_by_the_hidden_layer() -> None:
    features = cloud()
    labels = (features[:, 0] > 0) ^ (features[:, 1] > 0)
    assert probe(features, labels, HALVES, replace(QUICK, fewest_steps=600)) > 0.94


def test_the_score_is_of_test_images_and_of_them_alone() -> None:
    """Random labels can be learnt by heart, which says nothing of other images."""
    features, labels = cloud(dimensions=100), np.random.default_rng(1).integers(0, 4, 400)
    thorough = replace(QUICK, fewest_steps=500)
    assert probe(features, labels, HALVES._replace(test=HALVES.train), thorough) == 1
    assert 0.1 < probe(features, labels, HALVES, thorough) < 0.4


def test_a_score_worked_by_hand() -> None:
    """Sign is class; of four test images one bears the other class's label, and one a class that nobody learnt."""
    features = np.tile(np.array([[-1.0], [1.0]], dtype=np.float32), (20, 1))
    labels = np.array(["left", "right"] * 20)
    labels[36], labels[37] = "right", "above"
    split = Split(np.arange(36), np.arange(36, 40))
    assert probe(features, labels, split, QUICK) == 0.5


def test_nothing_is_learnt_from_test_images() -> None:
    features = cloud()
    labels = features[:, 0] > 0
    only = HALVES._replace(test=HALVES.test[:50])
    expected = probe(features, labels, only, QUICK)
    strange = features.copy()
    strange[HALVES.test[50:]] = 1e6
    assert probe(strange, labels, only, QUICK) == expected


def test_scale_and_shift_of_features_do_not_matter_and_constant_ones_do_no_harm() -> None:
    features = cloud()
    labels = features[:, 0] > 0
    expected = probe(features, labels, HALVES, QUICK)
    assert expected > 0.9
    for factor in (2.0**-30, 1024):
        assert probe(features * np.float32(factor), labels, HALVES, QUICK) == expected
    assert probe(features + 8, labels, HALVES, QUICK) == pytest.approx(expected, abs=0.02)
    still = np.column_stack([features, np.full(400, 7, np.float32)])
    assert probe(still, labels, HALVES, QUICK) > 0.9


def test_half_precision_is_as_good() -> None:
    features = cloud()
    labels = features[:, 0] > 0
    assert probe(features.astype(np.float16), labels, HALVES, QUICK) == pytest.approx(
        probe(features, labels, HALVES, QUICK), abs=0.02
    )


def test_the_same_seed_gives_the_same_score_and_the_callers_random_state_stays() -> None:
    features, labels = cloud(dimensions=20), np.random.default_rng(1).integers(0, 3, 400)
    before = torch.get_rng_state()
    scores = [probe(features, labels, HALVES, replace(QUICK, seed=seed)) for seed in (0, 0, 1, 2)]
    assert torch.equal(torch.get_rng_state(), before)
    assert scores[0] == scores[1]
    assert len(set(scores)) > 1


def test_the_probe_is_the_papers_one_hidden_layer_of_200_units() -> None:
    layers = list(module._perceptron(64, ProbeConfig().hidden, 10, seed=0).children())
    assert list(map(str, layers)) == [
        "Linear(in_features=64, out_features=200, bias=True)",
        "ReLU()",
        "Linear(in_features=200, out_features=10, bias=True)",
    ]


def test_few_images_are_passed_over_more_often_and_progress_is_told() -> None:
    told: list[Stage] = []
    probe(cloud(), cloud()[:, 0] > 0, HALVES, ProbeConfig(epochs=2, fewest_steps=50, mini_batch=20), told.append)
    assert [stage.done for stage in told] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])  # Ten steps a pass.
    told.clear()
    probe(cloud(), cloud()[:, 0] > 0, HALVES, ProbeConfig(epochs=2, fewest_steps=1), told.append)
    assert len(told) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"mini_batch": 0}, "mini_batch must be at least 1, got 0"),
        ({"learning_rate": 0}, "learning_rate must be above 0, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        ProbeConfig(**settings)


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(UserError, match="labels must be one for each of the 400 features, got 3"):
        probe(cloud(), np.arange(3), HALVES)


def found(count: int = 60, splits: bool = True) -> ImageSet:
    names = np.repeat(["train", "test"], [count - 20, 20])
    return replace(bars(count, side=8, classes=3), splits=names if splits else None)


def untrained(method: str = "dccm", **settings: object) -> Model:
    return Model.untrained(
        ImageShape(1, 8, 8), make_config(method, "paper", overrides={"n_clusters": 3, "device": "cpu"})
    )


def encoder_in(model: Model) -> Encoder:
    encoder = encoder_of(model.method)
    assert encoder is not None
    return encoder


def probed_model(model: Model, image_set: ImageSet, layers: tuple[Layer, ...] = LAYERS, **more: Any) -> Probed:
    return probe_encoder(encoder_in(model), model.loader(image_set.images), image_set, layers, **more)


def test_conv_is_the_whole_map_of_the_last_convolution_and_y_the_deep_feature() -> None:
    model, images = untrained(), found().images
    encoder = encoder_in(model)
    features = layer_features(encoder, model.loader(images))
    encoder.eval()
    with torch.inference_mode():
        output = encoder(torch.from_numpy(images).permute(0, 3, 1, 2) / 255)
    assert features["conv"].shape == (60, 256 * 2 * 2)
    assert features["y"].shape == (60, 64)
    np.testing.assert_allclose(features["conv"], output.conv.flatten(1).numpy(), rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(features["y"], output.feature.numpy(), rtol=2e-3, atol=1e-5)


def test_every_method_with_an_encoder_is_probed_and_stays_frozen() -> None:
    probed = 0
    for name in [name for name, kind in METHODS.items() if not kind.needs_vectors]:
        model = untrained(name)
        if encoder_of(model.method) is None:
            continue
        probed += 1
        before = {key: value.clone() for key, value in model.method.state_dict().items()}
        result = probed_model(model, found(), config=replace(QUICK, fewest_steps=20))
        assert set(result.accuracy) == {"conv", "y"}
        assert all(0 <= share <= 1 for share in result.accuracy.values())
        assert (result.train_images, result.test_images) == (40, 20)
        assert all(torch.equal(value, before[key]) for key, value in model.method.state_dict().items())
    assert probed >= 1


def test_bars_are_told_apart_even_by_random_convolutions() -> None:
    result = probed_model(untrained(), found(120), ("conv",), config=QUICK)
    assert result.accuracy["conv"] > 0.8
    assert list(result.accuracy) == ["conv"]


def test_the_images_own_split_is_used_unless_a_share_is_asked_for() -> None:
    own = split_of(found(), None, seed=0)
    assert own.train.tolist() == [*range(40)]
    assert own.test.tolist() == [*range(40, 60)]
    drawn = split_of(found(), 0.2, seed=0)
    assert sorted([*drawn.train, *drawn.test]) == [*range(60)]
    assert len(drawn.test) == 12
    assert drawn.test.tolist() == split_of(found(splits=False), 0.2, seed=0).test.tolist()
    assert drawn.test.tolist() != split_of(found(), 0.2, seed=1).test.tolist()


@pytest.mark.parametrize(("share", "tested"), [(0.001, 1), (0.96, 58)])
def test_both_sides_of_a_drawn_split_hold_images(share: float, tested: int) -> None:
    assert len(split_of(found(), share, seed=0).test) == tested


@pytest.mark.parametrize(
    ("images", "share", "words"),
    [
        (replace(found(), labels=None), None, "The images have no labels, .*class folders"),
        (found(splits=False), None, "not split into train and test. .*test_share of 0.2"),
        (replace(found(), splits=np.repeat("train", 60)), None, "must have the splits train and test, they have train"),
        (found(), 1.5, "test_share must lie between 0 and 1, got 1.5"),
        (found(), 0.999, "test_share must leave 2 images or more to learn from, got 0.999 of 60"),
    ],
)
def test_images_that_cannot_be_probed_are_refused(images: ImageSet, share: float | None, words: str) -> None:
    with pytest.raises(UserError, match=words):
        probed_model(untrained(), images, test_share=share)
