"""Features are computed once, also over a stop, and those of others are never taken for them."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.arrays import Bytes, Floats
from dccm.data.images import ImageSet
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.networks.feature_encoder import Preprocessing
from dccm.runs import features as module
from dccm.runs.features import features_of_images, unit_vectors
from dccm.training.progress import Stage

IMAGES = bars(50, side=8)


class Counting:
    """An encoder that counts the images it has seen, and may fail at one of them."""

    at_once = 4

    def __init__(self, identity: str = "counting 1", stop_at: int | None = None) -> None:
        self.name, self.identity, self.feature_size = "counting", identity, 64
        self.preprocessing = Preprocessing(8, (0, 0, 0), (1, 1, 1))
        self.seen, self.stop_at = 0, stop_at
        self.error: BaseException = KeyboardInterrupt()

    def __call__(self, images: Bytes) -> Floats:
        self.seen += len(images)
        if self.stop_at is not None and self.seen > self.stop_at:
            raise self.error
        return (images.reshape(len(images), -1).astype(np.float32) + 1) * 3


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMMIT", 8)
    # These tests count images; how long they take is foretold by a trial on some of them.
    monkeypatch.setattr(module, "expected_seconds", lambda *_: None)


def folder_in(cache: Path) -> Path:
    [folder] = (cache / "features").iterdir()
    return folder


def expected() -> Any:
    return unit_vectors((IMAGES.images.reshape(50, -1).astype(np.float32) + 1) * 3)


def test_each_image_has_a_vector_of_length_one_that_is_mapped_from_a_file(tmp_path: Path) -> None:
    shares: list[float] = []

    def on_progress(stage: Any) -> None:
        assert isinstance(stage, Stage)
        shares.append(stage.done)

    features = features_of_images(IMAGES, Counting(), cache=tmp_path, on_progress=on_progress)
    assert isinstance(features, np.memmap)
    assert (features.shape, features.dtype) == ((50, 64), np.float16)
    assert np.array_equal(features, expected())
    assert np.allclose(np.linalg.norm(features.astype(np.float32), axis=1), 1, atol=1e-3)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert {path.name for path in folder_in(tmp_path).iterdir()} == {
        *("features.npy", "manifest.json", "checked.json", "lock")
    }


def test_a_second_run_computes_nothing(tmp_path: Path) -> None:
    first, again = features_of_images(IMAGES, Counting(), cache=tmp_path), Counting()
    assert np.array_equal(features_of_images(IMAGES, again, cache=tmp_path), first)
    assert again.seen == 0


@pytest.mark.parametrize("stop_at", [3, 8, 31, 49])
def test_a_stopped_computation_goes_on_to_the_same_bytes(stop_at: int, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        features_of_images(IMAGES, Counting(stop_at=stop_at), cache=tmp_path / "stopped")
    again = Counting()
    features_of_images(IMAGES, again, cache=tmp_path / "stopped")
    features_of_images(IMAGES, Counting(), cache=tmp_path / "whole")
    assert again.seen == 50 - stop_at // 8 * 8
    stopped, whole = folder_in(tmp_path / "stopped"), folder_in(tmp_path / "whole")
    for name in ("features.npy", "manifest.json"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes()


CHILD = """
import os, signal, sys
from pathlib import Path
from tests.runs.test_features import IMAGES, Counting, features_of_images, module
module._COMMIT = 8
module.expected_seconds = lambda *_: None
class Killed(Counting):
    def __call__(self, images):
        if self.seen >= 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(images)
features_of_images(IMAGES, Killed(), cache=Path(sys.argv[1]))
"""


def test_a_killed_computation_goes_on(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], env=environment, check=False)
    assert child.returncode == -signal.SIGKILL
    again = Counting()
    assert np.array_equal(features_of_images(IMAGES, again, cache=tmp_path), expected())
    assert again.seen == 50 - 16


def _cut(folder: Path) -> None:
    os.truncate(folder / "features.npy", 200)


def _lengthen(folder: Path) -> None:
    with (folder / "features.npy").open("ab") as file:
        file.write(b"more")


def _flip(folder: Path) -> None:
    content = bytearray((folder / "features.npy").read_bytes())
    content[-100] ^= 1
    (folder / "features.npy").write_bytes(content)


def _other_shape(folder: Path) -> None:
    np.save(folder / "features.npy", np.load(folder / "features.npy").reshape(25, 128))


def _of_others(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"pixels": "00000000"}))


def _other_head(folder: Path) -> None:
    np.save(folder / "features.npy", np.zeros((50, 64), np.float32))


def _no_json(folder: Path) -> None:
    (folder / "manifest.json").write_text("[]")


@pytest.mark.parametrize("damage", [_cut, _lengthen, _flip, _other_shape, _of_others, _other_head, _no_json])
def test_damaged_features_and_those_of_other_images_are_computed_anew(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    features_of_images(IMAGES, Counting(), cache=tmp_path)
    damage(folder_in(tmp_path))
    again, said = Counting(), list[str]()
    assert np.array_equal(features_of_images(IMAGES, again, cache=tmp_path, say=said.append), expected())
    assert again.seen == 50
    assert "are damaged or of other images; they are computed anew." in said[0]


def test_what_was_damaged_while_stopped_is_not_built_upon(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        features_of_images(IMAGES, Counting(stop_at=30), cache=tmp_path)
    with (folder_in(tmp_path) / "features.npy").open("r+b") as file:
        file.seek(500)
        file.write(b"damage")
    assert np.array_equal(features_of_images(IMAGES, Counting(), cache=tmp_path), expected())


@pytest.mark.parametrize(
    ("images", "identity"),
    [
        (bars(50, side=8, seed=1), "counting 1"),
        (IMAGES, "counting 2"),
        (replace(IMAGES, images=IMAGES.images[:40]), "counting 1"),
    ],
)
def test_other_images_and_other_encoders_have_features_of_their_own(
    images: ImageSet, identity: str, tmp_path: Path
) -> None:
    features_of_images(IMAGES, Counting(), cache=tmp_path)
    other = Counting(identity)
    features_of_images(images, other, cache=tmp_path)
    assert other.seen == len(images.images)


def test_what_is_no_number_and_a_full_disk_end_in_one_sentence(tmp_path: Path) -> None:
    class Broken(Counting):
        def __call__(self, images: Bytes) -> Floats:
            return super().__call__(images) * np.float32(np.nan)

    with pytest.raises(UserError, match="The encoder 'counting' makes no numbers of the image 0. Take another"):
        features_of_images(replace(IMAGES, names=[str(n) for n in range(50)]), Broken(), cache=tmp_path)
    full = Counting(stop_at=9)
    full.error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(UserError, match="No room on disk to keep features in .* what is computed so far is kept"):
        features_of_images(IMAGES, full, cache=tmp_path)


def test_a_vector_of_zeros_stays_one() -> None:
    assert not unit_vectors(np.zeros((1, 4), np.float32)).any()
