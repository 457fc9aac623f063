"""What the cache keeps: prepared images, features of them, weights of encoders, downloaded data sets."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dccm.data.cache import FILES, is_in_use
from dccm.data.checked import HEAD, is_unharmed
from dccm.documents import UNREADABLE, read_json
from dccm.errors import require
from dccm.files import cache_folder
from dccm.npy import map_array

KINDS = ("images", "features", "encoders", "datasets")
_ARRAYS = {"images": ("images.npy", np.uint8), "features": ("features.npy", np.float16)}
"""Of the kinds that consist of one folder for each set of images: the array, and its numbers."""


@dataclass(frozen=True)
class Kept:
    """One preparation of images, or the features of one set of images."""

    kind: str
    folder: Path
    manifest: dict[str, Any]
    """Empty: it is not complete."""

    @property
    def key(self) -> str:
        """By which it is named; the beginning will do if no other begins so."""
        return self.folder.name

    @property
    def what(self) -> str:
        """Where the images come from, or by which encoder the features are."""
        return str(self.manifest.get("place") or self.manifest.get("encoder") or "unfinished")

    def state(self) -> str:
        """In a word, after a look at every byte."""
        if not self.manifest:
            return "in use" if is_in_use(self.folder) else "unfinished"
        try:
            return "sound" if self._is_sound() else "damaged"
        except (*UNREADABLE, AttributeError):
            return "damaged"

    def _is_sound(self) -> bool:
        name, numbers = _ARRAYS[self.kind]
        images = self.kind == "images"
        checksums = self.manifest["checksums"] if images else {name: self.manifest["checksum"]}
        if not is_unharmed(self.folder, checksums, FILES if images else [name], thorough=True):
            return False
        array = map_array(self.folder / name)
        whole = (self.folder / name).stat().st_size == HEAD + array.nbytes
        return bool(array.dtype == numbers and len(array) == self.manifest["images"] and whole)


def cache_sizes(cache: str | Path | None = None) -> dict[str, int]:
    """Bytes of each kind."""
    return {kind: size_of(Path(cache or cache_folder()) / kind) for kind in KINDS}


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; what vanishes meanwhile is not counted."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def kept(cache: str | Path | None = None) -> list[Kept]:
    """All preparations of images and all features."""
    return [Kept(kind, folder, _manifest(folder)) for kind in _ARRAYS for folder in _folders(cache, kind)]


def named(entries: Sequence[Kept], keys: Sequence[str]) -> list[Kept]:
    """Those whose keys begin so; all, if none is named."""
    for key in keys:
        found = [entry.key for entry in entries if entry.key.startswith(key)]
        require(
            len(found) == 1,
            f"'{key}' must be the beginning of one key, and it is of {len(found)}. See \"dccm cache list\".",
        )
    return [entry for entry in entries if not keys or entry.key.startswith(tuple(keys))]


def clear(entries: Sequence[Kept]) -> list[Kept]:
    """Delete what no process is at work on; returns what is left.

    Runs that have mapped the files keep them until they end; later ones prepare anew.
    """
    left = []
    for entry in entries:
        if is_in_use(entry.folder):
            left.append(entry)
            continue
        # The manifest first: what is stopped halfway is then known to be incomplete.
        (entry.folder / "manifest.json").unlink(missing_ok=True)
        shutil.rmtree(entry.folder, ignore_errors=True)
    return left


def _folders(cache: str | Path | None, kind: str) -> Iterator[Path]:
    top = Path(cache or cache_folder()) / kind
    if top.is_dir():
        yield from sorted(path for path in top.iterdir() if path.is_dir())


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_json(folder / "manifest.json")
    except UNREADABLE:
        return {}
    return manifest if isinstance(manifest, dict) else {}
