"""What holds for every method on pictures; what is a method's own is in its own file, vectors are in `test_heads`."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from dccm.arrays import ImageShape
from dccm.commands.cluster import cluster
from dccm.config import DataConfig, TrainingConfig, setting_names
from dccm.data.images import ImageSet
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.methods import METHODS
from dccm.methods.base import GradientMethod
from dccm.runs.config import RunConfig, make_config
from dccm.runs.directory import RunDirectory
from dccm.runs.fitting import fewer_at_once, fit, new_model
from dccm.runs.model import Model
from dccm.runs.run import run
from dccm.training.loop import InterruptedRunError
from dccm.training.progress import Progress, Stage

COUNT, CLUSTERS, EPOCHS = 48, 3, 2
SMALL = {"n_clusters": CLUSTERS, "batch_size": 24, "mini_batch": 8, "critic_positions": 4, "n_init": 2, "device": "cpu"}
SMALL |= {"uses": 1, "starts": 1, "pretraining": 0.5}  # Of two epochs: each stage has one.
SAME = ("history.jsonl", "assignments.csv", "model/weights.safetensors", "model/model.json")
FOUND = bars(COUNT, side=8, classes=CLUSTERS)
ON_PICTURES = [name for name, kind in METHODS.items() if not kind.needs_vectors]


def small(method: str, **more: object) -> dict[str, object]:
    """Settings for a run of seconds, as far as the method has them."""
    kinds = [DataConfig, TrainingConfig, METHODS[method].config_type]
    known = [name for kind in kinds for name in setting_names(kind)]
    return {"epochs": EPOCHS} | {name: value for name, value in SMALL.items() if name in known} | more


def config_of(method: str, **more: object) -> RunConfig:
    return make_config(method, overrides=small(method, **more))


def by_command(method: str, folder: Path, labels: Any) -> Path:
    """The run directory that the command's function fills."""
    images, output = folder / "bars.npz", folder / "run"
    np.savez(images, images=FOUND.images, labels=labels)
    cluster(images, method=method, settings=small(method), output=output)
    return output


class Finished(NamedTuple):
    method: str
    output: Path
    model: Model


@pytest.fixture(scope="module", params=ON_PICTURES)
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    output = by_command(request.param, tmp_path_factory.mktemp(request.param), FOUND.labels)
    return Finished(request.param, output, Model.load(output, "cpu"))


def assert_same(first: Path, second: Path) -> None:
    for name in SAME:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_command_writes_report_history_and_result(finished: Finished) -> None:
    result = json.loads((finished.output / "result.json").read_text())
    assert result["method"] == finished.method
    assert 0 < result["scores"]["acc"] <= 1
    history = [json.loads(line) for line in (finished.output / "history.jsonl").read_text().splitlines()]
    if issubclass(METHODS[finished.method], GradientMethod):
        assert [record["epoch"] for record in history] == [*range(1, EPOCHS + 1)]
        assert all(np.isfinite(record["loss"]) for record in history)
        assert result["cost"]["passes"] > 0
    else:
        assert history == []
    page = (finished.output / "report.html").read_text()
    assert page.count('<article class="card"') == CLUSTERS
    assert (">Loss</h3>" in page) == bool(history)


def test_probabilities_and_features_of_new_images_have_the_right_shapes(finished: Finished) -> None:
    for images in (FOUND.images, bars(30, side=8, classes=CLUSTERS, seed=7).images):
        probabilities, features = finished.model.predict_proba(images), finished.model.transform(images)
        assert probabilities.shape == (len(images), CLUSTERS)
        assert probabilities.min() >= 0
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
        assert features.ndim == 2
        assert len(features) == len(images)
        assert np.isfinite(features).all()
        assert probabilities.dtype == features.dtype == np.float32


def test_one_pass_over_the_images_gives_the_bits_of_two(finished: Finished) -> None:
    features: list[np.ndarray] = []
    assigned = finished.model.assign(FOUND.images, take_features=lambda rows: features.append(rows.copy()))
    probabilities = finished.model.predict_proba(FOUND.images)
    assert np.array_equal(assigned.clusters, probabilities.argmax(axis=1))
    assert np.array_equal(assigned.confidences, probabilities.max(axis=1))
    assert np.array_equal(np.concatenate(features), finished.model.transform(FOUND.images))
    assert np.array_equal(np.load(finished.output / "embedding.npy"), finished.model.transform(FOUND.images))
    assert np.array_equal(finished.model.assign(FOUND.images).confidences, assigned.confidences)


def test_networks_learn_in_bfloat16_and_are_kept_in_float32(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dccm.machine.has_bfloat16", lambda _: True)  # This CPU may have to imitate it.
    fitted = fit(FOUND.images, config_of(finished.method, precision="bfloat16"))
    assert all(tensor.dtype != torch.bfloat16 for tensor in fitted.model.method.state_dict().values())
    assert np.isfinite(fitted.model.predict_proba(FOUND.images)).all()
    assert all(np.isfinite(record["loss"]) for record in fitted.history)
    if fitted.history:
        usual = fit(FOUND.images, config_of(finished.method)).history[0]["loss"]
        assert fitted.history[0]["loss"] != usual
        assert fitted.history[0]["loss"] == pytest.approx(usual, rel=0.3)


def test_the_method_is_described(finished: Finished) -> None:
    kind = METHODS[finished.method]
    assert kind.year > 1900
    assert all((kind.citation, kind.learns, kind.cost))
    assert str(kind.year) in kind.citation


def test_an_image_is_predicted_alike_alone_and_in_any_batch(finished: Finished) -> None:
    images = bars(30, side=8, classes=CLUSTERS, seed=7).images
    together = finished.model.predict_proba(images)
    alone = np.concatenate([finished.model.predict_proba(images[i : i + 1]) for i in range(len(images))])
    shuffled = np.random.default_rng(0).permutation(len(images))
    np.testing.assert_allclose(alone, together, atol=1e-4)
    np.testing.assert_allclose(finished.model.predict_proba(images[shuffled]), together[shuffled], atol=1e-4)
    ranked = np.sort(together, axis=1)
    clear = ranked[:, -1] - ranked[:, -2] > 1e-3
    assert np.array_equal(alone.argmax(axis=1)[clear], together.argmax(axis=1)[clear])


def test_a_model_that_was_saved_again_predicts_the_same_bits(finished: Finished, tmp_path: Path) -> None:
    finished.model.save(tmp_path)
    loaded = Model.load(tmp_path, "cpu")
    assert np.array_equal(loaded.predict_proba(FOUND.images), finished.model.predict_proba(FOUND.images))
    assert np.array_equal(loaded.transform(FOUND.images), finished.model.transform(FOUND.images))


def test_a_loaded_model_assigns_the_images_as_the_run_did(finished: Finished) -> None:
    rows = (finished.output / "assignments.csv").read_text().splitlines()[1:]
    assigned = [int(row.split(",")[1]) for row in rows]
    assert finished.model.predict_proba(FOUND.images).argmax(axis=1).tolist() == assigned


def test_the_same_seed_gives_the_same_bits_whatever_the_labels_say(finished: Finished, tmp_path: Path) -> None:
    scrambled = np.random.default_rng(1).permutation(np.asarray(FOUND.labels)) + 5
    assert_same(by_command(finished.method, tmp_path, scrambled), finished.output)


def test_the_seed_decides_the_first_weights_and_leaves_the_callers_random_state(finished: Finished) -> None:
    shape, before = ImageShape(1, 8, 8), torch.get_rng_state()
    states = [Model.untrained(shape, config_of(finished.method, seed=seed)).method.state_dict() for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    if issubclass(METHODS[finished.method], GradientMethod):
        assert any(not torch.equal(states[0][name], states[2][name]) for name in states[0])


class StopAfter:
    """Ends a run, as Ctrl-C would, when it has reported so many times."""

    def __init__(self, reports: int) -> None:
        self.left = reports

    def __call__(self, _: Progress | Stage) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_twice_goes_on_to_the_same_bits(finished: Finished, tmp_path: Path) -> None:
    """The first checkpoint is of the border of an epoch, the second of its middle."""
    found = ImageSet(FOUND.images, [str(number) for number in range(COUNT)], FOUND.labels)
    config, said, directory = config_of(finished.method), list[str](), RunDirectory(tmp_path)
    if issubclass(METHODS[finished.method], GradientMethod):
        for reports, resume in ((3, False), (2, True)):
            with pytest.raises(InterruptedRunError):
                run(
                    found,
                    config,
                    directory,
                    resume=resume,
                    on_progress=StopAfter(reports),
                    say=said.append,
                )
        assert [path.stem for path in sorted(tmp_path.glob("checkpoints/*"))] == ["000000002", "000000003"]
    else:
        with pytest.raises(KeyboardInterrupt):
            run(found, config, directory, on_progress=StopAfter(1))
    assert not (tmp_path / "result.json").exists()
    run(found, config, directory, resume=True, say=said.append)
    assert_same(tmp_path, finished.output)


@pytest.mark.parametrize("method", ON_PICTURES)
def test_colour_images_of_32_pixels_are_clustered(method: str) -> None:
    images = bars(16, side=32, channels=3, classes=CLUSTERS).images
    images[..., 1] = images[..., 1][:, ::-1]  # No longer grey.
    model = fit(images, config_of(method, epochs=1)).model
    probabilities = model.predict_proba(images)
    assert probabilities.shape == (16, CLUSTERS)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(model.transform(images)).all()


@pytest.mark.parametrize("method", ON_PICTURES)
def test_more_clusters_than_images_are_refused(method: str) -> None:
    config = config_of(method, n_clusters=COUNT + 1)
    with pytest.raises(UserError, match="n_clusters must not exceed the number of images, 48, got 49"):
        new_model(FOUND.images, config)


@pytest.mark.parametrize("method", ON_PICTURES)
def test_fewer_images_than_a_mini_batch_are_taken_in_smaller_ones(method: str) -> None:
    if "mini_batch" not in small(method):
        assert new_model(FOUND.images[:CLUSTERS], config_of(method)).method.fewest_images <= CLUSTERS
        return
    wanted = config_of(method, mini_batch=64)
    model = new_model(FOUND.images, wanted)
    assert model.config.settings() == wanted.settings() | {"mini_batch": COUNT // 4}
    assert model.method.fewest_images <= COUNT
    assert fewer_at_once(model, wanted) == (
        f"There are fewer images than the 64 of a mini-batch, so it takes {COUNT // 4} of them: mini_batch = 12."
    )
    assert fewer_at_once(new_model(FOUND.images, config_of(method)), config_of(method)) is None


@pytest.mark.parametrize("method", ON_PICTURES)
@pytest.mark.parametrize("kind", ["black", "the same"])
def test_images_that_cannot_be_told_apart_are_clustered_all_the_same(method: str, kind: str) -> None:
    images = np.repeat(FOUND.images[:1], COUNT, axis=0) if kind == "the same" else np.zeros_like(FOUND.images)
    model = fit(images, config_of(method, epochs=1)).model
    assert len(set(model.predict_proba(images).argmax(axis=1).tolist())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in ON_PICTURES if issubclass(METHODS[name], GradientMethod)])
def test_compiled_networks_learn_the_same_but_for_rounding(method: str) -> None:
    plain, compiled = (fit(FOUND.images, config_of(method, epochs=1, compile=wanted)) for wanted in (False, True))
    assert compiled.model.method.state_dict().keys() == plain.model.method.state_dict().keys()
    assert compiled.history[0]["loss"] == pytest.approx(plain.history[0]["loss"], rel=0.02)
