"""The number of clusters as a user asks for it, and how it was chosen: the record that `choice.json` holds."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from dccm.documents import check, named_if_broken, parse_json, read_small
from dccm.errors import did_you_mean, require
from dccm.files import write_atomically

AUTO = "auto"
FEWEST = 2
"""Clusters that are tried at least."""
_MOST = 50
"""Clusters that `auto` tries at most."""
_IMAGES_PER_CLUSTER = 10
"""On average, at least, with the most clusters that `auto` tries."""
_LEAST_PER_CLUSTER = 4
"""The same for a range: each half of the images needs two per cluster."""
_LARGEST = 1_000_000
"""Bytes of a `choice.json` that is read."""
_CURVES = ("links", "separation", "stability", "score")


class Asked(NamedTuple):
    """Numbers of clusters to choose from."""

    text: str
    """As the user wrote it."""
    low: int = FEWEST
    high: int | None = None
    """None: as many as the images allow, up to 50."""

    def within(self, n_images: int) -> tuple[int, int]:
        """The fewest and the most clusters to try with so many images."""
        most = n_images // _LEAST_PER_CLUSTER
        require(
            most >= FEWEST,
            f"n_clusters must be a number to cluster {n_images} images, which are too few to choose from, "
            f"got '{self.text}'. Give one, or bring at least {FEWEST * _LEAST_PER_CLUSTER} images.",
        )
        if self.high is None:
            return self.low, max(FEWEST, min(_MOST, n_images // _IMAGES_PER_CLUSTER))
        require(
            self.high <= most,
            f"n_clusters must leave {_LEAST_PER_CLUSTER} images per cluster to choose from a range, at most {most} "
            f"clusters of {n_images} images, got '{self.text}'. Lower the range.",
        )
        return self.low, self.high


def asked_number(text: str) -> int | Asked:
    """Read a number of clusters, a range of them such as 5..30, or auto."""
    if text == AUTO:
        return Asked(text)
    if re.fullmatch(r"[+-]?\d{1,9}", text):
        return int(text)
    ends = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", text)
    require(
        ends is not None,
        f"n_clusters must be a whole number, a range such as 5..30, or auto, got '{text}'."
        + did_you_mean(text, [AUTO])
        + ' See "dccm choose-k".',
    )
    assert ends is not None
    low, high = int(ends[1]), int(ends[2])
    require(
        low >= FEWEST, f"n_clusters must begin at {FEWEST} or more in a range, got '{text}'. Write {FEWEST}..{high}."
    )
    require(low <= high, f"n_clusters must not fall from the first to the second number, got '{text}'. Swap them.")
    return Asked(text, low, high)


@dataclass(frozen=True)
class Choice:
    """How a number of clusters was chosen. No label was looked at."""

    asked: str
    """`auto` or a range."""
    space: str
    """What was judged: pixels, or features of an encoder."""
    images: int
    """How many images were looked at."""
    seed: int
    candidates: list[int]
    """Numbers of clusters that were tried, rising."""
    links: list[float]
    """Of each: do neighbours stay together, beyond chance?"""
    separation: list[float]
    """Of each: is the own centre nearer than the next one?"""
    stability: list[float]
    """Of each: do two halves of the images agree?"""
    score: list[float]
    """Product of the three."""
    suggestion: int
    runner_up: int | None
    sureness: str
    merges: list[list[float]]
    """How the suggested clusters merge, cheapest first: one, other, cost; the other becomes part of the one."""

    def sentence(self) -> str:
        """The choice in one line."""
        low, high = self.candidates[0], self.candidates[-1]
        place = self.candidates.index(self.suggestion)
        other = f"runner-up {self.runner_up}; " if self.runner_up is not None else ""
        return (
            f"K = {self.suggestion} suggested from {low}..{high} ({other}{self.sureness}): two halves of "
            f"{self.images:,} images agree on such clusters of their {self.space} by {self.stability[place]:.2f} of 1."
        )

    def curve(self, width: int = 40) -> str:
        """Score of each number of clusters as a bar of text."""
        top = max(max(self.score), 1e-12)
        marks = {self.suggestion: "  suggested", self.runner_up: "  runner-up"}
        return "\n".join(
            f"{number:5d}  {score:.3f}  {'#' * round(width * score / top)}{marks.get(number, '')}"
            for number, score in zip(self.candidates, self.score, strict=True)
        )

    def to_json(self) -> str:
        """The text of `choice.json`."""
        return json.dumps(asdict(self), indent=1) + "\n"


def write_choice(path: Path, choice: Choice) -> None:
    """Write a `choice.json`."""
    write_atomically(path, choice.to_json())


def read_choice(path: Path) -> Choice | None:
    """What a `choice.json` holds; None if there is none, as the number of clusters was given."""
    if not path.exists():
        return None
    with named_if_broken(path, "take a sound copy, or write the folder anew"):
        return choice_from(read_small(path, _LARGEST))


def choice_from(text: bytes) -> Choice:
    """The choice that a text describes; `ValueError` says what is wrong with it."""
    document: Any = parse_json(text)
    wanted = [entry.name for entry in fields(Choice)]
    check(isinstance(document, dict) and sorted(document) == sorted(wanted), f"not an object of {', '.join(wanted)}")
    for name, (rule, sound) in _RULES.items():
        check(sound(document[name]), f"{name} must be {rule}")
    numbers = document["candidates"]
    for name in _CURVES:
        check(_are_numbers(document[name], len(numbers)), f"{name} must be a number for each candidate")
    check(document["suggestion"] in numbers, "suggestion must be one of the candidates")
    check(document["runner_up"] in [*numbers, None], "runner_up must be one of the candidates, or null")
    return Choice(**document)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 1000


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _are_rising(values: object) -> bool:
    if not isinstance(values, list) or not values or not all(map(_is_count, values)):
        return False
    return values == sorted(set(values))


def _are_numbers(values: object, count: int) -> bool:
    if not isinstance(values, list) or len(values) != count:
        return False
    return all(type(value) in (int, float) and math.isfinite(value) for value in values)


def _is_merge(value: object) -> bool:
    return _are_numbers(value, 3)


_TEXT = ("a short text", _is_text)
_COUNT = ("a whole number from 0 up", _is_count)
_RULES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "asked": _TEXT,
    "space": _TEXT,
    "sureness": _TEXT,
    "images": _COUNT,
    "seed": _COUNT,
    "candidates": ("rising whole numbers", _are_rising),
    "merges": ("a list of three numbers each", lambda value: isinstance(value, list) and all(map(_is_merge, value))),
}
"""What each value of `choice.json` must be, in words and as a test."""
