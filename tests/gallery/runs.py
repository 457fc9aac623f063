"""A run over the handwritten digits to be looked at, and the application that serves it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from dccm.data.names import Names
from dccm.runs.contents import StoredSource
from dccm.runs.directory import RunDirectory
from tests.report.runs import write_run

TOKEN = "the-token"
HOSTILE = '<img src=x onerror="alert(1)">'


def write_gallery_run(folder: Path, count: int = 400) -> Path:
    """A run directory whose images lie in a folder as files, one of which is a link to something else."""
    images, run = folder / "images", folder / "run"
    images.mkdir(parents=True)
    digits = (load_digits().images[:count] * 255 / 16).astype(np.uint8)
    for number, pixels in enumerate(digits):
        Image.fromarray(pixels).resize((80, 80)).save(images / f"{number:04d}.png")
    write_run(run, digits[..., np.newaxis])
    paths = [f"{number:04d}.png" for number in range(count)]
    rows = (run / "assignments.csv").read_text("utf-8")
    _replace_paths(run, paths)
    assert rows
    directory = RunDirectory(run)
    source = StoredSource("folder", str(images.resolve()), "", count, (8, 8, 1), "c0ffee")
    directory.source.write_text(json.dumps(source.__dict__))
    features = digits.reshape(count, -1).astype(np.float32) / 255
    with directory.writing_embedding(paths) as add:
        add(features)
    return run


def _replace_paths(run: Path, paths: list[str]) -> None:
    directory = RunDirectory(run)
    directory.write_assignments(directory.read_assignments()._replace(paths=Names(paths)))


@contextmanager
def served(run: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of its own process, and its address; it is killed at the end."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "dccm", "serve", str(run), "--port", str(port), "--who", "tester"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    try:
        yield server, server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
