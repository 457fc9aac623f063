import json
import time
from pathlib import Path

import numpy as np
import pytest

from dccm.arrays import Bytes, Floats
from dccm.commands.lists import list_encoders
from dccm.data.synthetic import bars
from dccm.networks.feature_encoder import Preprocessing
from dccm.runs.features import features_of_images
from dccm.runs.speeds import duration, expected_seconds, known_speeds, measure_encoder, note_speed

PER_IMAGE = 0.004
FIRST = 0.2


class Clock:
    """Goes on only when somebody works."""

    now = 0.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)


class Slow:
    """An encoder that takes its time, and once more when it is first called."""

    name, identity, feature_size, at_once = "timm:slow", "slow 1", 3, 128
    preprocessing = Preprocessing(8, (0, 0, 0), (1, 1, 1))

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, images: Bytes) -> Floats:
        Clock.now += len(images) * PER_IMAGE + (0 if self.calls else FIRST)
        self.calls.append(len(images))
        return np.ones((len(images), 3), np.float32)


def test_a_trial_on_few_images_foretells_the_time_of_all() -> None:
    encoder, images = Slow(), np.zeros((800, 8, 8, 3), np.uint8)
    seconds = expected_seconds(encoder, images)
    assert seconds == pytest.approx(800 * PER_IMAGE)
    assert encoder.calls == [1, 1, 2, 4, 8]  # Not more than one in 64 at a time.


def test_too_few_images_are_not_tried() -> None:
    encoder = Slow()
    assert expected_seconds(encoder, np.zeros((63, 8, 8, 3), np.uint8)) is None
    assert not encoder.calls


def test_the_time_is_said_before_and_the_speed_kept_after(tmp_path: Path) -> None:
    said: list[str] = []
    features_of_images(bars(150, side=8), Slow(), cache=tmp_path, say=said.append)
    assert said == ["The features of 150 images by timm:slow take about 5 seconds; later runs find them in the cache."]
    assert known_speeds(tmp_path)["timm:slow"] == pytest.approx(1 / PER_IMAGE, abs=0.01)
    features_of_images(bars(150, side=8), Slow(), cache=tmp_path, say=said.append)
    assert len(said) == 1


def test_lists_have_the_speed_of_what_was_used_here(tmp_path: Path) -> None:
    note_speed(Slow(), 1000, 4.0, tmp_path)
    rows = {row["encoder"]: row for row in list_encoders(tmp_path)}
    assert rows["timm:slow"]["images/s"] == 250
    assert rows["efficientnet-lite0"]["images/s"] is None
    assert list(rows).index("timm:slow") == list(rows).index("timm:vit_small_patch14_dinov2.lvd142m") + 1


def test_few_images_tell_no_speed_and_a_broken_file_is_none(tmp_path: Path) -> None:
    note_speed(Slow(), 63, 1.0, tmp_path)
    assert known_speeds(tmp_path) == {}
    note_speed(Slow(), 64, 1.0, tmp_path)
    (tmp_path / "encoders" / "speeds.json").write_text("[1")
    assert known_speeds(tmp_path) == {}


def test_measuring_an_encoder_keeps_its_speed(tmp_path: Path) -> None:
    speed = measure_encoder(Slow(), tmp_path)
    assert speed == pytest.approx(1 / PER_IMAGE)
    stored = json.loads((tmp_path / "encoders" / "speeds.json").read_text())
    assert stored["timm:slow"] == pytest.approx(speed, abs=0.01)


def test_a_cache_that_cannot_be_written_loses_only_the_speed(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    note_speed(Slow(), 100, 1.0, tmp_path / "cache")
    assert known_speeds(tmp_path / "cache") == {}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "5 seconds"), (42, "40 seconds"), (89, "90 seconds"), (250, "4 minutes"), (9000, "2.5 hours")],
)
def test_durations_are_no_more_exact_than_they_are_known(seconds: float, words: str) -> None:
    assert duration(seconds) == words
