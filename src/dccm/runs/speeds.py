"""How fast encoders are on this machine: foretold before they work, and kept in the cache when they have worked."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dccm.arrays import Bytes
from dccm.documents import UNREADABLE, read_json
from dccm.errors import UserError
from dccm.files import cache_folder, write_atomically

if TYPE_CHECKING:  # It comes with torch, which takes seconds.
    from dccm.networks.feature_encoder import FeatureEncoder

_ENOUGH_SECONDS = 0.25
"""A call that takes so long tells the speed."""
_SAMPLED = 64
"""One image in so many may be computed just to foretell how long all of them take."""
_FEWEST = 64
"""Images from which on a computation tells how fast the encoder is."""


def expected_seconds(encoder: "FeatureEncoder", images: Bytes) -> float | None:
    """How long an encoder will take for images, by a trial on a few of them; None: they are too few to try it."""
    few = images[: len(images) // _SAMPLED]
    return len(images) / measured_speed(encoder, few) if len(few) else None


def measured_speed(encoder: "FeatureEncoder", images: Bytes) -> float:
    """Images per second: twice as many at a time, until a call takes long enough to tell or there are no more."""
    encoder(images[:1])  # What is slow only once.
    count = 1
    while True:
        started = time.perf_counter()
        encoder(images[:count])
        seconds = max(time.perf_counter() - started, 1e-9)
        if seconds > _ENOUGH_SECONDS or 2 * count > len(images):
            return count / seconds
        count *= 2


def measure_encoder(encoder: "FeatureEncoder", cache: str | Path | None = None) -> float:
    """Images per second of an encoder on images of its own side that are nothing but noise; kept in the cache."""
    side = encoder.preprocessing.side
    images = np.random.default_rng(0).integers(0, 256, (encoder.at_once, side, side, 3), dtype=np.uint8)
    speed = measured_speed(encoder, images)
    _keep(encoder.name, speed, cache)
    return speed


def note_speed(encoder: "FeatureEncoder", count: int, seconds: float, cache: str | Path | None = None) -> None:
    """Keep how fast an encoder was, if it had enough images to tell."""
    if count >= _FEWEST:
        _keep(encoder.name, count / max(seconds, 1e-9), cache)


def known_speeds(cache: str | Path | None = None) -> dict[str, float]:
    """Images per second by the name of the encoder, each measured when it last worked on this machine."""
    try:
        stored = read_json(_file(cache))
        return {str(name): float(speed) for name, speed in stored.items()}
    except (*UNREADABLE, AttributeError):
        return {}


def duration(seconds: float) -> str:
    """A time to wait in words, no more exact than it is known."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _keep(name: str, speed: float, cache: str | Path | None) -> None:
    # Two processes that write at once may lose one of two speeds, and a full disk both: nobody needs them.
    with suppress(OSError, UserError):
        _file(cache).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_file(cache), json.dumps(known_speeds(cache) | {name: round(speed, 2)}, indent=1) + "\n")


def _file(cache: str | Path | None) -> Path:
    return Path(cache or cache_folder()) / "encoders" / "speeds.json"
