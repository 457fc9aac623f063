from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dccm.commands.cluster import cluster
from dccm.correlations.triplets import PairStrategy
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.methods.dccm import DCCMMethod
from dccm.runs.config import make_config
from dccm.runs.fitting import fit, new_model
from dccm.runs.model import Model
from dccm.training.loop import InterruptedRunError
from tests.methods.test_contract import assert_same
from tests.runs.test_milestones import StopAfter

FOUND = bars(60, side=8, classes=3)
SETTINGS: dict[str, Any] = {"n_clusters": 3, "batch_size": 30, "mini_batch": 10, "epochs": 2, "critic_positions": 4}
SETTINGS |= {"learning_rate": 1e-3, "device": "cpu"}
ALONE = SETTINGS | {"clean_weight": 0, "perturbed_weight": 0}


def run(output: Path, settings: dict[str, Any], **more: Any) -> Path:
    cluster(FOUND, preset="paper", settings=settings, output=output, **more)
    return output


@pytest.fixture(scope="module")
def miner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without the mutual information: M3 of Table 3."""
    return run(tmp_path_factory.mktemp("miner") / "run", SETTINGS | {"information_weight": 0})


def method_of(miner: Path, **more: Any) -> DCCMMethod:
    settings = ALONE | {"mined_by": str(miner)} | more
    method = new_model(FOUND.images, make_config("dccm", "paper", overrides=settings)).method
    assert isinstance(method, DCCMMethod)
    return method


def test_the_pairs_are_those_of_the_other_model_whatever_the_network_says(miner: Path) -> None:
    other = Model.load(miner, "cpu")
    other.confidence = None
    method = method_of(miner)
    assert method.mined is not None
    assert np.array_equal(method.mined.rows.numpy(), other.predict_proba(FOUND.images))
    assert (other.predict_proba(FOUND.images).argmax(axis=1) == np.loadtxt(
        miner / "assignments.csv", delimiter=",", skiprows=1, usecols=1
    )).all()  # fmt: skip


def test_targets_of_a_large_batch_are_the_rows_of_its_images(miner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = method_of(miner)
    assert method.mined is not None
    mined = []

    def note(prediction: torch.Tensor, **_: float) -> None:
        mined.append(prediction)
        raise StopIteration

    monkeypatch.setattr("dccm.methods.dccm.mine", note)
    model = Model(method, Model.load(miner).shape, make_config("dccm", "paper", overrides=SETTINGS))
    batch = next(model.loader(FOUND.images).shuffled(0, 1))
    with pytest.raises(RuntimeError, match="StopIteration"):
        next(method.updates(batch))
    assert torch.equal(mined[0], method.mined.rows[batch.index])


@pytest.mark.parametrize("pairs", PairStrategy.__args__)  # type: ignore[attr-defined]
def test_the_mutual_information_alone_teaches_features_and_nothing_else(pairs: str, miner: Path) -> None:
    config = make_config("dccm", "paper", overrides=ALONE | {"mined_by": str(miner), "pairs": pairs})
    model = new_model(FOUND.images, config)
    before = {name: tensor.clone() for name, tensor in model.method.state_dict().items()}
    fitted = fit(FOUND.images, config, model=model)
    after = fitted.model.method.state_dict()
    learnt = {name for name, tensor in fitted.model.method.named_parameters() if not torch.equal(before[name], tensor)}
    assert {name.split(".")[0] for name in learnt} == {"encoder", "critic"}
    assert not [name for name in learnt if name.startswith("encoder.output")]
    assert len(after["mined.rows"]) == 0
    assert all(record["graph"] == record["label"] == 0 for record in fitted.history)
    assert "cluster_sizes" not in fitted.history[0]


def test_clusters_are_those_of_k_means_on_its_features(miner: Path, tmp_path: Path) -> None:
    output = run(tmp_path / "run", ALONE | {"mined_by": str(miner)})
    model, features = Model.load(output, "cpu"), np.load(output / "embedding.npy")
    centres = model.method.state_dict()["readout.centres"].numpy()
    distance = np.linalg.norm(features[:, None] - centres[None], axis=2)
    clusters = np.loadtxt(output / "assignments.csv", delimiter=",", skiprows=1, usecols=1)
    assert distance.argmin(axis=1).tolist() == clusters.tolist()
    assert np.array_equal(model.transform(FOUND.images), features)


def test_a_stopped_run_goes_on_to_the_same_bits_even_if_the_other_run_has_changed(miner: Path, tmp_path: Path) -> None:
    other = tmp_path / "miner"
    run(other, SETTINGS | {"information_weight": 0})
    settings = ALONE | {"mined_by": str(other)}
    unbroken = run(tmp_path / "unbroken", settings)
    with pytest.raises(InterruptedRunError):
        run(tmp_path / "run", settings, watcher=StopAfter(3))
    weights = other / "model" / "weights.safetensors"
    weights.unlink()
    run(tmp_path / "another", SETTINGS | {"information_weight": 0, "seed": 1})
    (tmp_path / "another" / "model" / "weights.safetensors").rename(weights)
    cluster(FOUND, output=tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", unbroken)


def test_a_run_that_was_named_from_one_folder_is_found_from_another(
    miner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(miner.parent)
    with pytest.raises(InterruptedRunError):
        run(tmp_path / "run", ALONE | {"mined_by": miner.name}, watcher=StopAfter(1))
    monkeypatch.chdir(tmp_path)
    finished = cluster(FOUND, output="run", resume=True)
    assert finished.result.settings["mined_by"] == str(miner.resolve())
    monkeypatch.chdir(miner.parent)
    cluster(FOUND, output=tmp_path / "run", settings={"mined_by": miner.name}, resume=True)


def test_a_model_mines_for_all_terms_too(miner: Path) -> None:
    config = make_config("dccm", "paper", overrides=SETTINGS | {"mined_by": str(miner), "label_threshold": 0.0})
    record = fit(FOUND.images, config).history[0]
    assert min(record["graph"], record["label"], record["information"]) > 0


def test_what_cannot_be_is_refused_in_one_sentence(miner: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="clean_weight and perturbed_weight must not both be 0: nothing would be"):
        make_config("dccm", "paper", overrides=ALONE)
    with pytest.raises(UserError, match="leave information_weight above 0"):
        make_config("dccm", "paper", overrides=ALONE | {"mined_by": "x", "information_weight": 0})
    with pytest.raises(UserError, match="starts must be 1 with mined_by, as all starts .* got 3"):
        make_config("dccm", "fast", overrides={"mined_by": "x"})
    with pytest.raises(UserError, match="mined_by must be the folder of a finished run, and .*nowhere has no model"):
        method_of(tmp_path / "nowhere")
    with pytest.raises(UserError, match="mined_by must name a run with 4 clusters, as this one, got 3"):
        method_of(miner, n_clusters=4)
    config = make_config("dccm", "paper", overrides=ALONE | {"mined_by": str(miner)})
    with pytest.raises(UserError, match="images must be 8 x 8 with 1 channels"):
        new_model(bars(60, side=12).images, config)
