"""What the files of a run directory hold."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.config import Section, Settings, to_toml

Record = dict[str, Any]
"""An epoch in the history."""
ASSIGNMENT_COLUMNS = ("path", "cluster", "confidence")


class Assignments(NamedTuple):
    """One entry per image."""

    paths: Sequence[str]
    clusters: npt.NDArray[np.int64]
    confidences: npt.NDArray[np.floating[Any]]
    """From 0 to 1; not a number where a method gives none."""


class Thumbnails(NamedTuple):
    """Copies of the most confident images."""

    images: Bytes
    """(M, H, W, C)"""
    row: npt.NDArray[np.int64]
    """Row of each in the assignments, (M,)."""


@dataclass(frozen=True)
class Begun:
    """What a run was begun with: the table `[run]` of `config.toml`."""

    method: str
    preset: str
    dataset: str
    images: int
    checksum: str
    """Of the pixels."""


class StoredConfig(NamedTuple):
    """What `config.toml` holds."""

    begun: Begun
    settings: Settings


@dataclass(frozen=True)
class StoredSource:
    """Where the images of a run came from, as `source.json` holds it."""

    kind: str
    place: str
    """Empty: they were in memory only."""
    key: str
    """Folder of the prepared images in the cache; empty: they were not prepared."""
    images: int
    shape: tuple[int, int, int]
    """Height, width and channels."""
    checksum: str
    """Of the pixels."""


def config_text(begun: Begun, sections: Sequence[Section]) -> str:
    """The text of `config.toml`."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in asdict(begun).items()]
    return "\n".join(["[run]", *lines, "", "[settings]", to_toml(sections)])


def parse_config(text: str) -> StoredConfig:
    """What a text of `config.toml` says."""
    content = tomllib.loads(text)
    return StoredConfig(Begun(**content["run"]), dict(content["settings"]))


def assignment_rows(assignments: Assignments) -> Iterator[tuple[str, int, str]]:
    """The rows of `assignments.csv`, one by one."""
    for path, cluster, confidence in zip(*assignments):
        yield path, int(cluster), "" if np.isnan(confidence) else f"{confidence:.6f}"
