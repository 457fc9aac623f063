import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dccm.arrays import Bytes
from dccm.commands.embed import embed
from dccm.commands.lists import list_encoders
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.networks.encoders import ENCODERS
from dccm.runs.directory import RunDirectory
from tests.networks.weights import write_weights
from tests.test_cli import dccm


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file:{write_weights(tmp_path_factory.mktemp('weights') / 'own.safetensors')}"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small images, two of them larger than the others, one of them broken."""
    folder = tmp_path_factory.mktemp("photos")
    for number, image in enumerate(bars(6, side=16).images):
        side = 300 if number == 5 else 20
        Image.fromarray(image[..., 0]).resize((side, side)).convert("RGB").save(folder / f"{number}.png")
    (folder / "broken.png").write_bytes(b"nothing")
    return folder


def test_images_become_vectors_with_names(photos: Path, encoder: str, tmp_path: Path) -> None:
    made = embed(photos, encoder, output=tmp_path / "vectors", cache=tmp_path / "cache", device="cpu")
    directory = RunDirectory(tmp_path / "vectors")
    embedding = directory.read_embedding()
    assert embedding.shape == (6, 1280)
    assert np.array_equal(embedding, made.features)
    assert np.allclose(np.linalg.norm(embedding, axis=1), 1, atol=1e-3)
    with directory.names.open(newline="") as file:
        assert list(csv.reader(file)) == [["path"], *([f"{number}.png"] for number in range(6))]
    assert json.loads(directory.encoder.read_text()) == {"name": encoder, "identity": made.encoder.identity}
    assert [path for path, _ in directory.read_skipped()] == ["broken.png"]
    assert directory.read_source().shape == (224, 224, 1)  # The largest is of 300, which the encoder has no use for.


def test_small_images_are_prepared_as_they_are_and_enlarged_by_the_encoder(encoder: str, tmp_path: Path) -> None:
    for number in range(3):
        Image.fromarray(bars(3, side=20, seed=1).images[number, ..., 0]).save(tmp_path / f"{number}.png")
    made = embed(tmp_path, encoder, output=tmp_path / "vectors", cache=tmp_path / "cache", device="cpu")
    assert made.image_set.images.shape == (3, 20, 20, 1)
    again = embed(tmp_path, encoder, output=tmp_path / "again", cache=tmp_path / "cache", image_size=16, device="cpu")
    assert again.image_set.images.shape == (3, 16, 16, 1)


def test_the_output_folder_and_the_encoder_are_checked_before_images_are_read(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> Bytes:
        pytest.fail("images were read")

    monkeypatch.setattr("dccm.commands.embed.read", read)
    with pytest.raises(UserError, match="No encoder 'none'"):
        embed("photos", "none", output=tmp_path / "new")
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="holds other files"):
        embed("photos", encoder, output=tmp_path)


def test_the_command_prints_where_vectors_are(
    photos: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("embed", photos, "--encoder", encoder, "--image-size", 16, "--device", "cpu")
    assert dccm(*words, "-o", tmp_path / "one", monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    assert "6 images, 1,280 numbers each, by file:" in out
    assert "features  100%" in err
    assert dccm(*words, "-o", tmp_path / "two", "--json", "--quiet", monkeypatch=monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 1280


def test_encoders_are_listed_with_what_they_were_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {row["encoder"]: row for row in list_encoders(tmp_path)}
    assert list(rows) == ["scratch", *(kind.example for kind in ENCODERS.values())]
    assert "with labels" in rows["efficientnet-lite0"]["trained on"]
    assert all(row["installed"] == "yes" or "pip install 'dccm[" in row["installed"] for row in rows.values())
    assert dccm("encoders", monkeypatch=monkeypatch) == 0
    assert "efficientnet-lite0" in capsys.readouterr().out


def test_encoders_can_be_measured(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("encoders", "--cache", tmp_path, "--json")
    assert dccm(*words, "--measure", encoder, monkeypatch=monkeypatch) == 0
    first = {row["encoder"]: row["images/s"] for row in json.loads(capsys.readouterr().out)}
    assert first[encoder] > 0
    assert dccm(*words, monkeypatch=monkeypatch) == 0
    assert {row["encoder"]: row["images/s"] for row in json.loads(capsys.readouterr().out)} == first
    assert dccm(*words, "--measure", "efficientnet", monkeypatch=monkeypatch) == 2
    assert "No encoder 'efficientnet'" in capsys.readouterr().err
