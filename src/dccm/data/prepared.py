"""Prepared images as the cache holds them: opened only if they are what was written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.data.cache import FILES, FORMAT, PASSING, SKIPPED
from dccm.data.checked import HEAD, is_unharmed
from dccm.data.duplicates import Hashes
from dccm.data.images import Skipped
from dccm.documents import UNREADABLE, read_json
from dccm.errors import require
from dccm.files import read_csv
from dccm.npy import map_array


@dataclass(frozen=True)
class Prepared:
    """A finished preparation."""

    images: Bytes
    kept: npt.NDArray[np.int64]
    hashes: Hashes
    skipped: list[Skipped]
    passing: list[int]
    """Places in the source of images that were skipped for what the moment did."""
    checksum: str
    """Of the pixels."""


def open_prepared(folder: Path, fingerprint: str) -> Prepared | None:
    """What a folder of the cache holds, if it is complete, unharmed and of this state of the source."""
    manifest = read_manifest(folder)
    if manifest is None or manifest["fingerprint"] != fingerprint:
        return None
    try:
        if not is_unharmed(folder, manifest["checksums"], FILES):
            return None
        images = _mapped(folder / "images.npy", manifest["preparation"]["size"])
        kept = np.fromfile(folder / "kept.i64", dtype=np.int64)
        hashes = np.fromfile(folder / "hashes.u64", dtype=np.uint64)
        skipped = read_skipped(folder) if manifest["skipped"] else []
        passing = [place - manifest["left_out"] for place in _places(folder, PASSING)] if skipped else []
        known = str(manifest["checksums"]["images.npy"])
    except (*UNREADABLE, AttributeError):
        return None
    sound = len(images) == len(kept) == len(hashes) == manifest["images"] and len(skipped) == manifest["skipped"]
    return Prepared(images, kept, hashes, skipped, passing, known) if sound else None


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a complete preparation."""
    try:
        manifest = read_json(folder / "manifest.json")
        return manifest if manifest["format"] == FORMAT and "fingerprint" in manifest else None
    except UNREADABLE:
        return None


def read_skipped(folder: Path) -> list[Skipped]:
    """What the manifest says was left out."""
    return [Skipped(row["path"], row["reason"]) for row in _rows(folder) if row["status"] in (SKIPPED, PASSING)]


def _mapped(path: Path, size: Any) -> Bytes:
    """The pixels; the head of their file has no checksum, so it is compared with what is known."""
    images: Bytes = map_array(path)
    right = images.dtype == np.uint8 and images.ndim == 4 and list(images.shape[1:3]) == list(size)
    require(right and path.stat().st_size == HEAD + images.nbytes, "the head of the file is not ours")
    return images


def _rows(folder: Path) -> Iterator[dict[str, str]]:
    return read_csv(folder / "manifest.csv", ("path", "status", "reason", "hash"), "prepare anew", exactly=True)


def _places(folder: Path, status: str) -> list[int]:
    """Numbers of the rows of this status."""
    return [number for number, row in enumerate(_rows(folder)) if row["status"] == status]
