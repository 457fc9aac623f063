"""What a reader copies from the front page and the guides is run, line by line, where the files it names are."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.pictures import encoded, put
from tests.data.published.official_files import write_cifar10
from tests.test_docs import GUIDES, ROOT, shell_lines

pytestmark = pytest.mark.slow  # Some fifty commands, each a process that loads torch; many train.

PAGES = [page for page in (ROOT / "README.md", *GUIDES) if shell_lines(page)]
NOT_RUN = {
    "--device cuda:1": "needs a GPU",
    "all --datasets digits": "tests/experiments runs it",
    "--engine ray": "tests/fleet runs it, where there is Ray",
    "demo": "`make wheel` runs it",
}
"""A part of the line, and why; what is left is planned where it cannot be run."""

SMALLER = {
    "--budget minutes:10": "--budget minutes:0.2",
    "[KEY ...]": "",
    "~/data": "data",
    "/shared/results": "results",
    "s3://": "",
    "--processes 8": "--processes 2",
}
"""What is written for a reader's images, clock and folders, and what stands here instead of it."""


def photos(folder: Path, each: int, classes: int = 12) -> Path:
    """Pictures of twelve colours, a folder for each."""
    draw = np.random.default_rng(each)
    for kind in range(classes):
        colour = np.array([kind % 3, kind // 3 % 2, kind // 6]) * [90, 120, 120] + 30
        for number in range(each):
            pixels = np.clip(colour + draw.normal(0, 25, (40, 40, 3)), 0, 255).astype(np.uint8)
            put(folder / f"kind{kind:02}" / f"{number:02}.png", encoded(pixels))
    return folder


def known_set(folder: Path) -> None:
    """The official files of CIFAR-10, with 120 images, and a parquet file of the same beside their folder."""
    images = np.random.default_rng(0).integers(0, 256, (120, 32, 32, 3), dtype=np.uint8)
    labels, names = [number % 10 for number in range(120)], [b"%d.png" % number for number in range(120)]
    write_cifar10(folder / "cifar-10-batches-py", images, labels, names)
    rows = [{"image": {"bytes": encoded(image)}, "label": label} for image, label in zip(images, labels)]
    pq.write_table(pa.Table.from_pylist(rows), folder.parent / "cifar10.parquet")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages take for granted: pictures, labels, an archive, and a run of each name."""
    world = tmp_path_factory.mktemp("world")
    photos(world / "photos", 8)
    photos(world / "new-photos", 2)
    shutil.copytree(world / "photos", world / "labelled")
    shutil.copytree(world / "photos", world / "a")
    for name in ("photos.zip", "b.zip"):
        with zipfile.ZipFile(world / name, "w") as archive:
            for path in sorted((world / "new-photos").rglob("*.png")):
                archive.write(path, path.relative_to(world / "new-photos"))
    for shard in ("shards/0.tar", "shards/1.tar", "bucket/0.tar", "bucket/photos/0.tar", "bucket/new/0.tar"):
        (world / shard).parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(world / shard, "w") as archive:
            archive.add(world / "new-photos", "")
    known_set(world / "data")
    told(world, "cluster photos -k 12 --encoder scratch --budget passes:1 -o clusters")
    change = {"kind": "move", "images": ["kind00/00.png", "kind01/00.png"], "cluster": 3}
    (world / "first.jsonl").write_text(json.dumps(change))
    told(world, "corrections clusters --import first.jsonl")
    told(world, "cluster photos -k 12 -m kmeans --encoder scratch -o other-clusters")
    rows = [f"{path.relative_to(world / 'photos')},{path.parent.name}" for path in (world / "photos").rglob("*.png")]
    (world / "labels.csv").write_text("\n".join(["path,label", *rows]))
    return world


@pytest.fixture
def place(world: Path, tmp_path: Path) -> Path:
    """A copy of it for one page."""
    shutil.copytree(world, tmp_path / "place")
    return tmp_path / "place"


def told(folder: Path, words: str) -> str:
    """What a command prints."""
    surroundings = os.environ | {"DCCM_CACHE": str(folder / "cache"), "COLUMNS": "200"}
    line = f"'{sys.executable}' -m dccm {words}"
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stderr[-2000:]}"
    return done.stdout


def looked_at(folder: Path, words: str) -> None:
    """Start the gallery, ask for its page, and end it as Ctrl-C does."""
    server = subprocess.Popen(
        [sys.executable, "-m", "dccm", *words.split(), "--port", "0"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        with urllib.request.urlopen(server.stdout.readline().strip()) as answer:
            assert b"<html" in answer.read()
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(20) in (0, 130)


def as_it_is_run_here(line: str) -> str:
    """A line of a page with the names of this place in it; training is short, and the paper's is planned, not run."""
    for theirs, ours in SMALLER.items():
        line = line.replace(theirs, ours)
    if line.startswith("reproduce") and "--print-commands" not in line:
        line += " --print-commands"
    if line.startswith("reproduce") and "--datasets" not in line:  # One of the paper's six is here.
        line = line.replace("--print-commands", "--datasets cifar10 --print-commands")
    if line.startswith("cluster") and "--budget" not in line and "--resume" not in line:
        line += " --budget passes:2"
    if re.search(r"\bcifar10\b", line) and "--data-root" not in line:
        line += " --data-root data"
    return line.strip()


def make_room(folder: Path, line: str) -> None:
    """Pages show several ways to write one folder; a reader would take one of them."""
    written = re.search(r" -o (\S+)", line)
    if written and "--resume" not in line:
        shutil.rmtree(folder / written.group(1), ignore_errors=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_works_as_written(page: Path, place: Path) -> None:
    for written in shell_lines(page):
        line = as_it_is_run_here(written)
        if any(part in line for part in NOT_RUN):
            continue
        make_room(place, line)
        if "--improve" in line:  # By now a reader has corrected some images, perhaps of a run that the page made anew.
            told(place, "corrections clusters --import first.jsonl")
        if line.startswith("serve"):
            looked_at(place, line)
        else:
            told(place, line)


def test_what_is_not_run_is_written_somewhere() -> None:
    lines = [as_it_is_run_here(line) for page in PAGES for line in shell_lines(page)]
    for part in NOT_RUN:
        assert any(part in line for line in lines), part
