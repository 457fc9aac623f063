"""Runs to be exported: some digits as files of a folder, with corrections."""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from dccm.commands.corrections import import_corrections
from dccm.runs.contents import StoredSource
from dccm.runs.directory import RunDirectory
from tests.gallery.runs import write_gallery_run

COUNT = 30
NAMED = "=Ones & sevens"


def folder_run(folder: Path) -> Path:
    """A run over the files of a folder; cluster 1 has a name, 7 went into it, the first image is wrong in its place."""
    run = write_gallery_run(folder, COUNT)
    _corrected(run, "0000.png", "0002.png")
    return run


def _corrected(run: Path, wrong: str, moved: str) -> None:
    changes: list[dict[str, object]] = [
        {"kind": "rename", "cluster": 1, "name": NAMED},
        {"kind": "merge", "clusters": [1, 7], "cluster": 1},
        {"kind": "mark", "images": [wrong], "mark": "wrong"},
        {"kind": "move", "images": [moved], "cluster": 5},
    ]
    import_corrections(run, [json.dumps(change) for change in changes])


def array_run(folder: Path) -> Path:
    """A run over an array file with labels, whose images have numbers in the place of names."""
    run = write_gallery_run(folder, COUNT)
    digits = load_digits()
    pixels = (digits.images[:COUNT, ..., np.newaxis] * 255 / 16).astype(np.uint8)
    np.savez(folder / "digits.npz", images=pixels, labels=digits.target[:COUNT])
    directory = RunDirectory(run)
    numbers = [str(number) for number in range(COUNT)]
    directory.write_assignments(directory.read_assignments()._replace(paths=numbers))
    source = StoredSource("array", str((folder / "digits.npz").resolve()), "", COUNT, (8, 8, 1), "c0ffee")
    directory.source.write_text(json.dumps(source.__dict__))
    return run


def pixels_of(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)
