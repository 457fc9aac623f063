import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dccm.arrays import ImageShape
from dccm.errors import UserError
from dccm.methods.base import encoder_of
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.checkpoint import read_tensors, write_tensors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Model.untrained(ImageShape(1, 8, 8), make_config(preset="paper", overrides={"n_clusters": 3})).save(
        tmp_path / "model"
    )
    return tmp_path / "model"


def change(folder: Path, **values: object) -> None:
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_model_is_safetensors_and_json_and_nothing_else(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "weights.safetensors"]
    assert json.loads((folder / "model.json").read_text())["version"] == 1


def test_a_run_directory_is_as_good_as_the_model_in_it(folder: Path) -> None:
    assert Model.load(folder.parent).shape == ImageShape(1, 8, 8)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no model in .*: model\.json is missing"):
        Model.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "other", "version": 1}', '{"version": 1}'])
def test_a_description_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "model.json").write_text(text)
    with pytest.raises(UserError, match=r"model\.json is not a model description of dccm"):
        Model.load(folder)


def test_a_newer_format_is_refused(folder: Path) -> None:
    change(folder, version=2)
    with pytest.raises(UserError, match="format version 2, and this dccm reads up to 1. Update dccm"):
        Model.load(folder)


@pytest.mark.parametrize("shape", [None, 8, {"height": 8}])
def test_a_description_with_something_missing_or_wrong_is_refused(folder: Path, shape: object) -> None:
    change(folder, image_shape=shape)
    with pytest.raises(UserError, match="is damaged: image_shape is wrong, "):
        Model.load(folder)


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    settings = json.loads((folder / "model.json").read_text())["settings"]
    change(folder, settings=settings | {"n_clusters": 5})
    with pytest.raises(UserError, match="do not fit the network that model.json describes"):
        Model.load(folder)


@pytest.mark.parametrize("rows", [[1], "none"])
def test_a_description_with_a_wrong_scale_of_rows_is_refused(folder: Path, rows: object) -> None:
    change(folder, rows=rows)
    with pytest.raises(UserError, match="is damaged: rows is wrong, "):
        Model.load(folder)


def test_a_model_that_is_loaded_and_saved_keeps_how_rows_become_images(folder: Path, tmp_path: Path) -> None:
    scale = {"features": 64, "low": -1.0, "high": 3.5}
    model = Model.load(folder)
    assert model.rows is None
    model.rows = scale
    model.save(tmp_path / "first")
    Model.load(tmp_path / "first").save(tmp_path / "second")
    assert Model.load(tmp_path / "second").rows == scale
    assert (tmp_path / "second" / "model.json").read_bytes() == (tmp_path / "first" / "model.json").read_bytes()


@pytest.mark.parametrize("method", ["dccm", "dac", "rotnet"])
def test_clusters_and_features_take_one_pass_through_the_encoder(method: str) -> None:
    starts = {} if method == "rotnet" else {"starts": 1}
    model = Model.untrained(ImageShape(1, 8, 8), make_config(method, overrides={"n_clusters": 3} | starts))
    encoder, passes = encoder_of(model.method), list[int]()
    assert isinstance(encoder, torch.nn.Module)
    encoder.register_forward_hook(lambda *_: passes.append(1))
    told: list[float] = []
    model.assign(
        np.zeros((5000, 8, 8, 1), np.uint8),
        take_features=lambda rows: None,
        on_progress=lambda stage: told.append(stage.done),
    )
    assert len(passes) == len(told) == 2
    assert told[-1] == 1


def test_truncated_weights_are_refused(folder: Path) -> None:
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(UserError, match="cut short"):
        Model.load(folder)


def test_pickled_weights_are_refused(folder: Path) -> None:
    torch.save(read_tensors(folder / "weights.safetensors").tensors, folder / "weights.safetensors")
    with pytest.raises(UserError, match="is not a safetensors file"):
        Model.load(folder)


def test_missing_weights_are_named(folder: Path) -> None:
    (folder / "weights.safetensors").unlink()
    with pytest.raises(UserError, match=r"There is no file .*weights\.safetensors"):
        Model.load(folder)


def test_weights_with_a_tensor_missing_are_refused(folder: Path) -> None:
    path = folder / "weights.safetensors"
    tensors = read_tensors(path).tensors
    tensors.popitem()
    write_tensors(path, tensors, {})
    with pytest.raises(UserError, match="do not fit the network"):
        Model.load(folder)


def test_images_of_another_shape_are_refused() -> None:
    model = Model.untrained(ImageShape(1, 8, 8), make_config(preset="paper", overrides={"n_clusters": 3}))
    with pytest.raises(UserError, match="images must be 8 x 8 with 1 channels for this model, got 9 x 8 with 1"):
        model.predict_proba(np.zeros((2, 9, 8, 1), dtype=np.uint8))


def test_building_a_model_leaves_the_callers_random_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Model.untrained(ImageShape(1, 8, 8), make_config(preset="paper", overrides={"n_clusters": 3}))
    assert torch.equal(torch.rand(3), expected)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UserError, match="device 'abacus' cannot be used on this machine"):
        Model.untrained(ImageShape(1, 8, 8), make_config(preset="paper", overrides={"device": "abacus"}))
