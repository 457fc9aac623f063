"""Whatever a moment does: nothing is lost, nothing is silent, no traceback, and the same bits in the end.

`make test` goes through six scenes once; `make faults` goes on with new seeds for
FAULT_MINUTES. The seed of a failure is in its name and output: FAULT_SEED=... begins there.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from dccm.data.synthetic import bars
from tests.data.pictures import encoded, noise, put
from tests.faults import machines as m

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits and disks of Linux are used")
MINUTES = float(os.environ.get("FAULT_MINUTES", "0"))
SEED = int(os.environ.get("FAULT_SEED", "0"))
ODD_CLOCK = """
import random, sys, time
true, chance = time.time, random.Random(int(sys.argv[1]))
time.time = lambda: true() + chance.choice((-4e7, -100, 0, 100, 4e7))
sys.argv = ["dccm", *sys.argv[2:]]
from dccm.cli import main
main()
"""
FEATURES = """
import sys, time
from pathlib import Path
from tests.runs.test_features import IMAGES, Counting, features_of_images, module
module._COMMIT = 8
module.expected_seconds = lambda *_: None
class Slow(Counting):
    def __call__(self, images):
        time.sleep(0.05)
        return super().__call__(images)
features_of_images(IMAGES, Slow(), cache=Path(sys.argv[1]))
"""


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return m.pictures(tmp_path_factory.mktemp("faults") / "images")


@pytest.fixture(scope="session")
def whole(images: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes | str]:
    """What a preparation leaves to which nothing happens."""
    cache = tmp_path_factory.mktemp("whole")
    assert m.done(m.prepare(images, cache))[0] == 0
    return m.clean(cache)


def ends_whole(images: Path, cache: Path, whole: dict[str, bytes | str]) -> None:
    """The next preparation makes everything good."""
    assert m.done(m.prepare(images, cache))[0] == 0
    assert m.clean(cache) == whole


def preparing_is_killed(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    words = m.prepare(images, folder / "cache")
    m.kill_until_done(words, chance, 3.0, lambda: words)
    ends_whole(images, folder / "cache", whole)


def two_prepare_and_one_is_killed(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    words = m.prepare(images, folder / "cache")
    first, second = m.begin(words), m.begin(words)
    time.sleep(chance.uniform(0.2, 2))
    first.kill()
    m.end(first)
    assert m.end(second)[0] == 0
    assert m.clean(folder / "cache") == whole


def the_disk_is_full(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    with m.small_disk(folder / "disk", chance.randrange(460, 1000)) as disk:
        code, said = m.done(m.prepare(images, disk / "cache"))
        assert (code, "oom on disk" in said or "free" in said) in ((2, True), (0, False)), said
        m.remounted(disk, "size=8000k")
        ends_whole(images, disk / "cache", whole)


def the_disk_becomes_read_only(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    with m.small_disk(folder / "disk", 8000) as disk:
        if chance.random() < 0.5:
            m.killed(m.prepare(images, disk / "cache"), chance.uniform(0.3, 2))
        m.remounted(disk, "ro")
        code, said = m.done(m.prepare(images, disk / "cache"))
        assert code == 2
        assert "Choose another cache folder" in said
        m.remounted(disk, "rw")
        ends_whole(images, disk / "cache", whole)


def memory_is_short(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    amount = chance.randrange(250, 900) * 1024 * 1024
    code, said = m.done(m.prepare(images, folder / "cache", 8), m.limited(resource.RLIMIT_AS, amount))
    assert code == 0 or "Out of memory" in said, said
    ends_whole(images, folder / "cache", whole)


def descriptors_are_short(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    words = m.prepare(images, folder / "cache", 16)
    code, said = m.done(words, m.limited(resource.RLIMIT_NOFILE, chance.randrange(7, 32)))
    assert code == 0 or "open files of this process" in said, said
    ends_whole(images, folder / "cache", whole)


def the_clock_jumps(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    words = m.prepare(images, folder / "cache")[3:]
    code, said = m.done([sys.executable, "-c", ODD_CLOCK, str(chance.randrange(10**6)), *words])
    assert code == 0, said
    ends_whole(images, folder / "cache", whole)


def the_source_changes(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    own = m.pictures(folder / "own", 600)
    process = m.begin(m.prepare(own, folder / "cache"))
    until = time.monotonic() + chance.uniform(0.5, 2)
    while process.poll() is None and time.monotonic() < until:
        _change_one(own, chance)
    m.end(process)
    found = _images_in(m.done([*m.prepare(own, folder / "cache"), "--json"])[1])
    again = _images_in(m.done([*m.prepare(own, folder / "other"), "--json"])[1])
    assert found == again
    pixels = [next((folder / name / "images").glob("*/images.npy")).read_bytes() for name in ("cache", "other")]
    assert pixels[0] == pixels[1]


def _change_one(folder: Path, chance: Random) -> None:
    """A file is deleted, cut, written anew, or new."""
    path = folder / f"{chance.randrange(7)}" / f"{chance.randrange(700):05}.bmp"
    match chance.randrange(3):
        case 0:
            path.unlink(missing_ok=True)
        case 1 if path.exists():
            os.truncate(path, chance.randrange(200))
        case _:
            put(path, encoded(noise(chance.randrange(10**6), 8), "BMP"))


def _images_in(said: str) -> tuple[int, list[str]]:
    document = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    return document["images"], [row["path"] for row in document["skipped"]]


def features_are_killed(chance: Random, images: Path, whole: dict[str, bytes | str], folder: Path) -> None:
    words = [sys.executable, "-c", FEATURES, str(folder / "cache")]
    m.kill_until_done(words, chance, 6.0, lambda: words)
    [features] = (folder / "cache").glob("features/*/features.npy")
    from tests.runs.test_features import expected

    assert np.array_equal(np.load(features), expected())


SHORT: list[Callable[..., None]] = [
    preparing_is_killed,
    the_disk_is_full,
    the_disk_becomes_read_only,
    memory_is_short,
    descriptors_are_short,
    the_source_changes,
]
SCENES = [*SHORT, two_prepare_and_one_is_killed, the_clock_jumps, features_are_killed]


def again_and_again(scene: Callable[..., None], share: float, folder: Path, *things: object) -> None:
    """A scene with one seed after the other, until its share of the time is over."""
    until, seed = time.monotonic() + 60 * share, SEED
    while True:
        print(f"{scene.__name__}: seed {seed}")
        scene(Random(seed), *things, folder / str(seed))
        seed += 1
        if time.monotonic() > until:
            return


@pytest.mark.parametrize("scene", SCENES if MINUTES else SHORT, ids=lambda scene: str(scene.__name__))
def test_nothing_is_lost_when(
    scene: Callable[..., None], images: Path, whole: dict[str, bytes | str], tmp_path: Path
) -> None:
    again_and_again(scene, MINUTES / (len(SCENES) + len(RUNS)), tmp_path, images, whole)


SETTINGS = ["batch_size=24", "mini_batch=8", "checkpoint_minutes=0", "critic_positions=4", "uses=1", "starts=2"]
SAME = ("history.jsonl", "assignments.csv", "model/weights.safetensors", "model/model.json", "embedding.npy")


@pytest.fixture(scope="session")
def bars_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bars") / "bars.npz"
    np.savez(path, images=bars(72, side=8).images)
    return path


def cluster(images: Path, output: Path, *more: str) -> list[str]:
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    return m.dccm("cluster", images, "-k", 4, "-o", output, "--epochs", 4, "--preset", "fast", *sets, *more)


@pytest.fixture(scope="session")
def run(bars_file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run leaves to which nothing happens."""
    output = tmp_path_factory.mktemp("unbroken") / "run"
    assert m.done(cluster(bars_file, output))[0] == 0
    return outcome(output)


def outcome(output: Path) -> dict[str, bytes]:
    return {name: (output / name).read_bytes() for name in SAME}


def finished(images: Path, output: Path, run: dict[str, bytes]) -> None:
    """Going on, or beginning where nothing was begun, ends as if nothing had happened."""
    begun = (output / "config.toml").exists()
    code, said = m.done(cluster(images, output, *(["--resume"] if begun else [])))
    assert code == 0, said
    assert outcome(output) == run


def training_is_killed(chance: Random, images: Path, run: dict[str, bytes], folder: Path) -> None:
    output = folder / "run"

    def again() -> list[str]:
        return cluster(images, output, *(["--resume"] if (output / "config.toml").exists() else []))

    m.kill_until_done(again(), chance, 12.0, again)
    assert outcome(output) == run


def the_disk_of_a_run_is_full(chance: Random, images: Path, run: dict[str, bytes], folder: Path) -> None:
    with m.small_disk(folder / "disk", chance.randrange(40, 20_000)) as disk:
        code, said = m.done(cluster(images, disk / "run"))
        assert code == 0 or "No room on disk" in said, said
        m.remounted(disk, "size=60000k")
        if code:
            finished(images, disk / "run", run)


def two_write_to_one_folder(chance: Random, images: Path, run: dict[str, bytes], folder: Path) -> None:
    first = m.begin(cluster(images, folder / "run"))
    time.sleep(chance.uniform(0, 1))
    second = m.begin(cluster(images, folder / "run"))
    codes = sorted(m.end(process)[0] for process in (first, second))
    assert codes == [0, 2]
    assert outcome(folder / "run") == run


def the_clock_of_a_run_jumps(chance: Random, images: Path, run: dict[str, bytes], folder: Path) -> None:
    words = cluster(images, folder / "run", "--budget", "passes:3")[3:]
    code, said = m.done([sys.executable, "-c", ODD_CLOCK, str(chance.randrange(10**6)), *words])
    assert code == 0, said


RUNS: list[Callable[..., None]] = [
    training_is_killed,
    the_disk_of_a_run_is_full,
    two_write_to_one_folder,
    the_clock_of_a_run_jumps,
]


@pytest.mark.skipif(not MINUTES, reason="FAULT_MINUTES is not set; tests/test_resume.py kills runs too")
@pytest.mark.parametrize("scene", RUNS, ids=lambda scene: str(scene.__name__))
def test_no_run_is_lost_when(
    scene: Callable[..., None], bars_file: Path, run: dict[str, bytes], tmp_path: Path
) -> None:
    again_and_again(scene, MINUTES / (len(SCENES) + len(RUNS)), tmp_path, bars_file, run)
