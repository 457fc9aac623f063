import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.errors import UserError
from dccm.networks.onnx_file import onnx_encoder
from dccm.networks.pretrained import open_encoder
from tests.networks.onnx_files import ADDED, mean_colour, write_onnx

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
needs_onnxruntime = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs pip install 'dccm[onnx]'")


@needs_onnxruntime
@pytest.mark.parametrize("batch", ["B", 1, 2])
def test_a_file_makes_vectors_of_any_number_of_images(batch: int | str, tmp_path: Path) -> None:
    encoder = open_encoder(f"onnx:{write_onnx(tmp_path / 'mean.onnx', (batch, 3, 16, 16))}")
    assert (encoder.feature_size, encoder.preprocessing) == (
        3,
        (16, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "bicubic"),
    )
    assert np.allclose(encoder(IMAGES), mean_colour(IMAGES) + ADDED, atol=1e-5)


@needs_onnxruntime
def test_pooled_maps_become_vectors_and_channels_may_be_last(tmp_path: Path) -> None:
    pooled = onnx_encoder(write_onnx(tmp_path / "pooled.onnx", flat=False))
    assert np.allclose(pooled(IMAGES), mean_colour(IMAGES), atol=1e-5)
    last = onnx_encoder(write_onnx(tmp_path / "last.onnx", ("B", 16, 16, 3)))
    assert np.allclose(last(IMAGES), IMAGES.reshape(5, -1) / 255, atol=1e-6)


@needs_onnxruntime
def test_the_file_beside_it_says_how_pixels_are_scaled(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "mean.onnx", ("B", 3, "H", "W"))
    plain = onnx_encoder(path)
    assert plain.preprocessing.side == 224
    (tmp_path / "mean.json").write_text(json.dumps({"side": 16, "mean": [0.5, 0.25, 0], "std": 0.5}))
    scaled = onnx_encoder(path)
    assert np.allclose(scaled(IMAGES), (mean_colour(IMAGES) - [0.5, 0.25, 0]) / 0.5 + ADDED, atol=1e-5)
    assert scaled.identity != plain.identity


@needs_onnxruntime
def test_the_file_beside_it_says_how_images_are_resized(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "mean.onnx")
    images = IMAGES[:, ::2, ::2]
    plain, beside = onnx_encoder(path), tmp_path / "mean.json"
    beside.write_text('{"interpolation": "nearest"}')
    nearest = onnx_encoder(path)
    assert np.allclose(nearest(images), mean_colour(images) + ADDED, atol=1e-5)
    assert not np.allclose(plain(images), nearest(images), atol=1e-5)
    assert nearest.identity == f"{plain.identity} nearest"
    beside.write_text('{"interpolation": "cubic"}')
    with pytest.raises(UserError, match="interpolation in .*mean.json must be one of bicubic, .* got 'cubic'. Correct"):
        onnx_encoder(path)


@needs_onnxruntime
def test_identity_follows_the_weights_and_not_the_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    paths = [write_onnx(folder / "mean.onnx") for folder in (tmp_path, tmp_path / "other")]
    assert len({onnx_encoder(path).identity for path in paths}) == 1
    (tmp_path / "mean.onnx.data").write_bytes(b"weights")
    assert len({onnx_encoder(path).identity for path in paths}) == 2


@needs_onnxruntime
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"outputs": 2}, "must have one input and one output, and .* has 1 and 2. Export it with its features alone."),
        (
            {"shape": ("B", 1, 16, 16)},
            r"must take floats \(B, 3, H, W\) or \(B, H, W, 3\), and .* takes tensor",
        ),
        (
            {"location": "../weights.bin"},
            "keeps weights outside of its folder, which are not read. Put them",
        ),
        ({"location": "/weights.bin"}, "keeps weights outside of its folder"),
        ({"location": "link.bin"}, "keeps weights outside of its folder"),
    ],
)
def test_files_that_cannot_be_encoders_are_refused(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(ADDED.tobytes())
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(UserError, match=words):
        onnx_encoder(write_onnx(folder / "model.onnx", **given))


@needs_onnxruntime
def test_weights_beside_the_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "mean.onnx.data").write_bytes((ADDED + 3).tobytes())
    encoder = onnx_encoder(write_onnx(tmp_path / "mean.onnx", location="mean.onnx.data"))
    assert np.allclose(encoder(IMAGES), mean_colour(IMAGES) + ADDED + 3, atol=1e-5)


@needs_onnxruntime
@pytest.mark.parametrize("content", ["[]", "{", '{"mean": [1, 2]}', '{"std": 0}', '{"sides": 3}', '{"side": "x"}'])
def test_a_wrong_file_beside_it_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "mean.json").write_text(content)
    with pytest.raises(UserError, match="mean.json must be like .* Correct it."):
        onnx_encoder(write_onnx(tmp_path / "mean.onnx"))


@needs_onnxruntime
def test_a_side_that_the_file_does_not_take_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mean.json").write_text('{"side": 32}')
    with pytest.raises(UserError, match="must be 16, which mean.onnx takes, got 32"):
        onnx_encoder(write_onnx(tmp_path / "mean.onnx"))


@needs_onnxruntime
def test_what_is_no_onnx_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("nothing")
    with pytest.raises(UserError, match="text.onnx is no ONNX file that can be run .* Export it anew."):
        onnx_encoder(tmp_path / "text.onnx")


def test_a_missing_file_and_a_missing_extra_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="There is no file .*no.onnx. Name an ONNX file"):
        onnx_encoder(tmp_path / "no.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match=r"needs onnxruntime. Get it with: pip install 'dccm\[onnx\]'"):
        onnx_encoder(write_onnx(tmp_path / "mean.onnx"))
