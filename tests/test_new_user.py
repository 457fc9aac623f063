"""Somebody who reads nothing but the front page types its first block, line by line, where nothing is installed yet."""

import csv
import json
import os
import re
import signal
import subprocess
import urllib.request
import venv
from collections.abc import Iterator
from math import cos, pi, sin
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.test_docs import ROOT, blocks

pytestmark = pytest.mark.slow  # Installs PyTorch into an empty environment, and trains.

STEPS = [line.split(" #")[0].strip() for line in blocks(ROOT / "README.md", "sh")[0].splitlines()]
SIDES = (0, 3, 4, 6)
"""Corners of the shapes; a circle has none."""
COLOURS = ("crimson", "seagreen", "royalblue")


def shape(kind: int, draw: np.random.Generator) -> Image.Image:
    """One of twelve kinds, wherever it may lie: a shape of some colour, on a ground that is a little different."""
    image = Image.new("RGB", (96, 96), tuple(map(int, draw.integers(200, 256, 3))))
    pencil, colour = ImageDraw.Draw(image), COLOURS[kind // len(SIDES)]
    x, y, radius, turn = *draw.uniform(38, 58, 2), draw.uniform(22, 34), draw.uniform(0, pi)
    corners = SIDES[kind % len(SIDES)]
    if corners:
        angles = [turn + 2 * pi * corner / corners for corner in range(corners)]
        pencil.polygon([(x + radius * cos(angle), y + radius * sin(angle)) for angle in angles], colour)
    else:
        pencil.ellipse((x - radius, y - radius, x + radius, y + radius), colour)
    return image


def shapes(folder: Path, count: int, seed: int) -> None:
    """Pictures in one folder, in no order."""
    draw = np.random.default_rng(seed)
    folder.mkdir()
    for number, kind in enumerate(draw.permutation(np.arange(count) % (len(SIDES) * len(COLOURS)))):
        shape(int(kind), draw).save(folder / f"{number:03}.png")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 pictures, 24 later ones, and a Python in which nothing is installed."""
    home = tmp_path_factory.mktemp("home")
    shapes(home / "photos", 300, seed=0)
    shapes(home / "new-photos", 24, seed=1)
    venv.create(home / "venv", with_pip=True)
    return home


def surroundings(home: Path) -> dict[str, str]:
    """Without what this process knows; pip takes the versions that were tried, as a reader's may be newer."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    path = f"{home / 'venv' / 'bin'}{os.pathsep}{kept['PATH']}"
    return kept | {
        "PATH": path,
        "HOME": str(home),
        "DCCM_CACHE": str(home / "cache"),
        "PIP_CONSTRAINT": str(ROOT / "requirements.txt"),
    }


def typed(home: Path, line: str) -> str:
    """What a line prints."""
    place = ROOT if line.startswith("pip") else home
    done = subprocess.run(["bash", "-c", line], cwd=place, env=surroundings(home), capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"
    return done.stdout


def rename(home: Path, line: str, cluster: int, name: str) -> None:
    """Open the address that is printed, name a cluster as the page does, and end with Ctrl-C."""
    served = ["bash", "-c", f"exec {line}"]
    with subprocess.Popen(served, cwd=home, env=surroundings(home), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            with urllib.request.urlopen(address) as page:
                assert b"<html" in page.read()
            change = json.dumps({"kind": "rename", "cluster": cluster, "name": name, "key": "k"}).encode()
            headers = {"content-type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(f"{address}api/changes", change, headers)).close()
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(20) in (0, 130)


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def test_each_line_of_the_front_page_works_in_its_order(home: Path) -> None:
    install, cluster, serve, predict, export = STEPS
    typed(home, install)
    assert re.search(r"300 images", typed(home, cluster))
    found = list(rows(home / "clusters" / "assignments.csv"))
    assert len(found) == 300
    assert (home / "clusters" / "report.html").is_file()

    first = int(found[0]["cluster"])
    rename(home, serve, first, "mine")
    typed(home, predict)
    assert len(list(rows(home / "new" / "assignments.csv"))) == 24
    assert {int(row["cluster"]): row["name"] for row in rows(home / "new" / "clusters.csv")}[first] == "mine"

    typed(home, export)
    [sorted_] = [path.parent for path in home.glob("*/mine")]
    assert len(list((sorted_ / "mine").iterdir())) == sum(int(row["cluster"]) == first for row in found)
