"""What holds for every method that learns on vectors by gradient; their own ideas are in their own files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.evaluation.metrics import accuracy
from dccm.methods import METHODS
from dccm.methods.base import GradientMethod
from dccm.methods.heads import Neighbourhood, begin_heads, mini_batches, neighbour_count, watched
from dccm.networks.components import LinearHeads
from dccm.runs.config import RunConfig, make_config
from dccm.runs.directory import RunDirectory
from dccm.runs.features import Pretrained
from dccm.runs.fitting import fit, new_model
from dccm.runs.model import Model
from dccm.runs.run import run
from dccm.training.collapse import Health
from dccm.training.loop import InterruptedRunError
from dccm.training.progress import Progress, Stage
from dccm.training.update import Moment
from tests.methods.vectors import as_image_set, blobs
from tests.support import random_prediction, seeded

HEADS = [name for name, kind in METHODS.items() if kind.takes_vectors and issubclass(kind, GradientMethod)]
ONLY_VECTORS = [name for name in HEADS if METHODS[name].needs_vectors]
EPOCHS = {"dccm": 10, "dec": 10, "dac": 10, "scan": 40, "temi": 40, "turtle": 2}
SAME = ("history.jsonl", "assignments.csv", "model/weights.safetensors", "model/model.json")


def config_of(method: str, **more: Any) -> RunConfig:
    given = {"n_clusters": 3, "batch_size": 75, "mini_batch": 25, "device": "cpu", "encoder": "efficientnet-lite0"}
    given |= {"epochs": EPOCHS[method]} | ({"heads": 4, "fewest_steps": 1} if method in ("scan", "temi") else {})
    return make_config(method, overrides=given | more)


def assigned(model: Model, vectors: Any) -> Any:
    return model.predict_proba(vectors).argmax(axis=1)


@pytest.mark.parametrize("method", HEADS)
def test_blobs_are_told_apart_and_new_vectors_join_them(method: str) -> None:
    vectors, labels = blobs(150)
    model = fit(vectors, config_of(method)).model
    assert accuracy(labels, assigned(model, vectors)) > 0.95
    alone = np.concatenate([model.predict_proba(vectors[i : i + 1]) for i in range(9)])
    np.testing.assert_allclose(alone, model.predict_proba(vectors)[:9], atol=1e-4)
    assert model.transform(vectors).shape[0] == 150


def test_enough_steps_are_as_they_were_and_few_images_get_more() -> None:
    vectors, _ = blobs(150)
    weights = {
        fewest: fit(vectors, config_of("dccm", epochs=2, fewest_steps=fewest)).model.method.state_dict()
        for fewest in (1, 3, 4)
    }
    assert all(torch.equal(weights[1][name], weights[3][name]) for name in weights[1])  # 75 images have three steps.
    assert not torch.equal(weights[1]["encoder.output.weight"], weights[4]["encoder.output.weight"])


@pytest.mark.parametrize("method", ONLY_VECTORS)
def test_a_head_that_begins_from_k_means_tells_many_blobs_apart(method: str) -> None:
    vectors, labels = blobs(200, classes=8, size=24)
    model = fit(vectors, config_of(method, n_clusters=8, start="kmeans", epochs=EPOCHS[method] // 2)).model
    assert accuracy(labels, assigned(model, vectors)) > 0.95


class StopAfter:
    """Ends a run, as Ctrl-C would, after so many large batches."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def __call__(self, progress: Progress | Stage) -> None:
        self.left -= isinstance(progress, Progress)
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("method", HEADS)
def test_a_run_that_was_stopped_twice_goes_on_to_the_same_bits(method: str, tmp_path: Path) -> None:
    vectors, _ = blobs(150)
    config = config_of(method, epochs=4, **({"steps": 3} if method == "turtle" else {}))
    pretrained = Pretrained("efficientnet-lite0", "none", ImageShape(1, 8, 8))
    given: dict[str, Any] = {"inputs": vectors, "pretrained": pretrained, "say": lambda _: None}
    run(as_image_set(150), config, RunDirectory(tmp_path / "whole"), **given)
    # The first stop is in the middle of an epoch, the second in the second half of the run, which may be a new stage.
    for batches, resume in ((3, False), (3, True)):
        with pytest.raises(InterruptedRunError):
            run(
                as_image_set(150),
                config,
                RunDirectory(tmp_path / "parts"),
                resume=resume,
                on_progress=StopAfter(batches),
                **given,
            )
    run(as_image_set(150), config, RunDirectory(tmp_path / "parts"), resume=True, **given)
    for name in SAME:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize("method", HEADS)
def test_two_hundred_clusters_of_few_vectors_each(method: str) -> None:
    vectors, _ = blobs(420, classes=200, size=32)
    steps = {"steps": 2} if method == "turtle" else {}
    fitted = fit(vectors, config_of(method, n_clusters=200, epochs=2, batch_size=420, mini_batch=210, **steps))
    probabilities = fitted.model.predict_proba(vectors)
    assert probabilities.shape == (420, 200)
    assert np.isfinite(probabilities).all()
    assert all(np.isfinite(record["loss"]) for record in fitted.history)


@pytest.mark.parametrize("method", ONLY_VECTORS)
@pytest.mark.parametrize("count", [2, 5])
def test_a_handful_of_vectors_is_enough_with_the_usual_mini_batch(method: str, count: int) -> None:
    vectors, _ = blobs(count, classes=2, size=3)
    config = make_config(method, overrides={"n_clusters": 2, "epochs": 1, "encoder": "efficientnet-lite0"})
    assert np.isfinite(fit(vectors, config).model.predict_proba(vectors)).all()


@pytest.mark.parametrize("method", ONLY_VECTORS)
def test_pictures_are_refused(method: str) -> None:
    words = f"{method} needs the vectors of a pretrained encoder, got images of 8 x 8 x 1. Set encoder = 'efficientnet"
    with pytest.raises(UserError, match=words):
        new_model(bars(30, side=8).images, make_config(method, overrides={"n_clusters": 3}))


@pytest.mark.parametrize("method", HEADS)
def test_a_saved_model_predicts_the_same_bits_and_holds_nothing_of_single_images(method: str, tmp_path: Path) -> None:
    vectors, _ = blobs(75)
    model = fit(vectors, config_of(method, epochs=1)).model
    model.save(tmp_path)
    assert np.array_equal(Model.load(tmp_path, "cpu").predict_proba(vectors), model.predict_proba(vectors))
    assert all(75 not in tensor.shape for tensor in model.method.state_dict().values())


@pytest.mark.parametrize("method", HEADS)
def test_heads_learn_in_bfloat16_and_are_kept_in_float32(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.machine.has_bfloat16", lambda _: True)  # This CPU may have to imitate it.
    vectors, _ = blobs(75)
    fitted = fit(vectors, config_of(method, epochs=2, precision="bfloat16"))
    assert all(tensor.dtype != torch.bfloat16 for tensor in fitted.model.method.state_dict().values())
    assert all(np.isfinite(record["loss"]) for record in fitted.history)


def test_neighbours_are_found_with_progress_and_drawn_for_their_own_image() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]], np.float32)
    told: list[Progress | Stage] = []
    neighbourhood = Neighbourhood(1)
    neighbourhood.look(points, 1, told.append)
    assert told == [Stage("neighbours", 1.0)]
    images, others = neighbourhood.pairs(torch.tensor([4, 0, 3]), seeded())
    assert images.flatten().tolist() == [20, 0, 11]
    assert others.flatten().tolist() == [21, 1, 10]


@pytest.mark.parametrize(("fewest", "times"), [(1, 1), (3, 1), (4, 2), (20, 7)])
def test_small_sets_are_gone_through_several_times(fewest: int, times: int) -> None:
    parts = list(mini_batches(torch.arange(100, 160), 20, fewest, seeded()))
    assert [len(part) for part in parts] == [20] * 3 * times
    assert torch.cat(parts).bincount()[100:].tolist() == [times] * 60
    assert times == 1 or not torch.equal(parts[0], parts[3])


@pytest.mark.parametrize(("images", "n_clusters", "expected"), [(60_000, 10, 20), (600, 20, 15), (30, 20, 1)])
def test_no_more_neighbours_than_half_a_cluster_holds(images: int, n_clusters: int, expected: int) -> None:
    assert neighbour_count(20, images, n_clusters) == expected


def test_heads_from_k_means_say_where_the_nearest_centre_is_and_differ() -> None:
    vectors, labels = blobs(90, spread=0.3)
    points = vectors[:, 0, 0].astype(np.float32)
    heads = LinearHeads(3, 16, 3)
    begin_heads(heads, points, seed=0)
    said = heads(torch.from_numpy(points)).argmax(dim=2)
    assert all(accuracy(labels, row.numpy()) > 0.9 for row in said)
    assert not torch.equal(heads.weight[0], heads.weight[1])


def test_the_watch_counts_what_is_sure_and_what_shares_a_cluster() -> None:
    seen = watched(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.2, 0.8]]))
    assert seen.cluster_sizes.tolist() == [3, 1]
    assert int(seen.confident) == 3
    assert float(seen.linked) == pytest.approx(6 / 12)
    assert not watched(random_prediction(4, 3).requires_grad_()).information.requires_grad


@pytest.mark.parametrize("method", HEADS)
def test_no_term_of_the_loss_hides_behind_a_figure_of_the_watch(method: str) -> None:
    vectors, _ = blobs(75)
    model = new_model(vectors, config_of(method))
    loader = model.loader(vectors)
    model.learner.before_epoch(loader, Moment(0, 0.0))
    update = next(iter(model.learner.updates(next(loader.shuffled(0)))))
    assert not set(update.terms) & set(Health([1, 2], 0.5, 0.5).record())
