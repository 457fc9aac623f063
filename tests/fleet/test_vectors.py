"""Shards through a pretrained encoder, alone and before a model."""

from pathlib import Path

import numpy as np
import pytest

from dccm.commands.cluster import cluster
from dccm.commands.embed import embed
from dccm.commands.predict import predict
from dccm.commands.shards import embed_shards, predict_shards
from dccm.data.synthetic import bars
from dccm.errors import UserError
from tests.data.pictures import encoded
from tests.data.sources.archives import tar
from tests.fleet.test_fleet import rows
from tests.networks.weights import write_weights

IMAGES = bars(6, side=16).images[..., 0]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file:{write_weights(tmp_path_factory.mktemp('weights') / 'own.safetensors')}"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards of three pictures; one more is broken."""
    (tmp_path / "shards").mkdir()
    for number in range(2):
        members = {f"{place}.png": encoded(IMAGES[place]) for place in range(3 * number, 3 * number + 3)}
        tar(tmp_path / "shards" / f"{number}.tar", members | {"broken.png": b"nothing"})
    return tmp_path / "shards"


def test_vectors_are_those_of_the_usual_command(encoder: str, shards: Path, tmp_path: Path) -> None:
    usual = embed(
        str(shards), encoder, output=tmp_path / "usual", cache=tmp_path / "cache", device="cpu", image_size=16
    )
    for _ in range(2):
        summary = embed_shards(str(shards), encoder, tmp_path / "out", image_size=16, device="cpu")
        assert (summary.images, summary.skipped) == (6, 2)
    found = rows(tmp_path / "out")
    vectors = np.array([row["feature"] for row in found if row["feature"] is not None])
    assert [row["path"] for row in found if row["reason"] is None] == list(usual.image_set.names)
    assert np.allclose(vectors, usual.features, atol=2e-3)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    with pytest.raises(UserError, match="holds results with image_size = '16', and now it is '32'"):
        embed_shards(str(shards), encoder, tmp_path / "out", image_size=32, device="cpu")


def test_a_model_of_vectors_assigns_as_by_the_usual_command(encoder: str, shards: Path, tmp_path: Path) -> None:
    settings = {"device": "cpu", "image_size": 16}
    made = cluster(
        str(shards), 2, "kmeans", output=tmp_path / "run", encoder=encoder, settings=settings, cache=tmp_path / "cache"
    )
    usual = predict(made.directory.path, str(shards), device="cpu", cache=tmp_path / "cache")
    predict_shards(made.directory.path, str(shards), tmp_path / "out", device="cpu")
    found = [row for row in rows(tmp_path / "out") if row["reason"] is None]
    assert [row["cluster"] for row in found] == usual.assignments.clusters.tolist()
    assert np.allclose([row["confidence"] for row in found], usual.assignments.confidences, atol=1e-3, equal_nan=True)
