"""Views: vectors of perturbed copies beside the vectors of the images themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dccm.arrays import Halves
from dccm.commands.cluster import cluster
from dccm.data.images import ImageSet
from dccm.data.loader import Batch, Loader
from dccm.errors import UserError
from dccm.methods.dccm import DCCMMethod
from dccm.runs.config import RunConfig, make_config
from dccm.runs.fitting import fit, new_model
from dccm.runs.views import views_of
from tests.commands.test_vectors import coloured
from tests.networks.test_perturbed_encoder import IMAGES, Pixels
from tests.networks.weights import write_weights

VIEWS: dict[str, Any] = {"encoder": "efficientnet-lite0", "n_clusters": 2, "mini_batch": 5, "epochs": 1, "views": 2}


def config(**settings: Any) -> RunConfig:
    return make_config("dccm", overrides=VIEWS | {"perturbed_weight": 1.0} | settings)


def vectors(count: int = 20, seed: int = 0) -> Halves:
    rows = np.random.default_rng(seed).normal(size=(count, 1, 1, 6))
    return np.asarray(rows / np.linalg.norm(rows, axis=3, keepdims=True), np.float16)


def test_one_more_view_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    image_set = ImageSet(IMAGES, [str(number) for number in range(len(IMAGES))])
    first = views_of(image_set, Pixels(), config(views=1), cache=tmp_path)
    folders = set((tmp_path / "features").iterdir())
    both = views_of(image_set, Pixels(), config(views=2), cache=tmp_path)
    assert [view.shape for view in both] == [(6, 1, 1, 144)] * 2
    assert np.array_equal(first[0], both[0])
    assert len(set((tmp_path / "features").iterdir()) - folders) >= 1


def test_a_batch_has_the_views_of_its_images() -> None:
    clean, view = vectors(), vectors(seed=1)
    loader = Loader(clean, batch_size=10, seed=0, device=torch.device("cpu"), views=[clean, view])
    for batch in loader.shuffled(0):
        assert batch.views is not None
        assert torch.equal(batch.views[0], batch.images)
        assert np.array_equal(batch.views[1].numpy()[:, :, 0, 0], view[batch.index.numpy()][:, 0, 0].astype(np.float32))


def test_a_perturbed_copy_is_one_of_the_views() -> None:
    method = new_model(vectors(), config()).method
    assert isinstance(method, DCCMMethod)
    looks = torch.stack([torch.full((20, 6, 1, 1), float(number)) for number in range(3)])
    batch = Batch(torch.zeros(20, 6, 1, 1), torch.arange(20), torch.Generator().manual_seed(0), views=looks)
    drawn = method._perturbed(batch)(torch.arange(20))
    assert (drawn == drawn[:, :1]).all()
    assert set(drawn[:, 0, 0, 0].tolist()) == {0.0, 1.0, 2.0}


def test_what_is_learnt_depends_on_the_views() -> None:
    clean = vectors(40)
    history = [fit(clean, config(), views=[view, view]).history for view in (vectors(40, 1), vectors(40, 2))]
    assert history[0][0]["loss"] != history[1][0]["loss"]


def test_views_must_be_as_many_as_the_settings_say() -> None:
    with pytest.raises(UserError, match="views must be 2, as the settings say, got 1"):
        fit(vectors(), config(), views=[vectors()])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"encoder": "scratch"}, "views must be 0 with the encoder 'scratch'"),
        ({"finetune": 1, "perturbed_weight": 0.0}, "views must be 0 .* where blocks of one are trained"),
        ({"perturbed_weight": 0.0}, "views must be 0 where nothing learns from perturbed images, got 2"),
        ({"views": 0}, "perturbed_weight must be 0 on vectors .* Set views = 4"),
        ({"views": -1}, "views must be at least 0, got -1"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        config(**settings)


def test_information_on_vectors_needs_a_layer_that_learns() -> None:
    with pytest.raises(UserError, match="deep_feature must be 'logits' for an information_weight on vectors"):
        new_model(vectors(), config(information_weight=0.1))
    fitted = fit(vectors(), config(information_weight=0.1, deep_feature="logits"), views=[vectors()] * 2)
    assert fitted.history[0]["information"] != 0


def test_a_run_with_views_is_resumed_and_new_images_need_none(tmp_path: Path) -> None:
    encoder = f"file:{write_weights(tmp_path / 'own.safetensors')}"
    given: dict[str, Any] = {"encoder": encoder, "cache": tmp_path / "cache"}
    given["settings"] = {"mini_batch": 10, "views": 1, "perturbed_weight": 1.0}
    whole = cluster(coloured(30), 3, output=tmp_path / "whole", epochs=2, **given)
    cluster(coloured(30), 3, output=tmp_path / "parts", epochs=1, **given)
    again = cluster(coloured(30), output=tmp_path / "parts", epochs=2, resume=True, cache=tmp_path / "cache")
    assert np.array_equal(again.directory.read_embedding(), whole.directory.read_embedding())
    assert again.directory.read_assignments().clusters.tolist() == whole.directory.read_assignments().clusters.tolist()
