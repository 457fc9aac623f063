"""Results folders of a stranger: what `dccm reproduce` reads back, harmed by somebody who knows the formats."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.commands import reproduce as module
from dccm.commands.reproduce import reproduce
from dccm.data.synthetic import bars
from dccm.experiments.data_sets import DataSets
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.training.progress import OnProgress
from tests.experiments.stand_ins import Here
from tests.strangers.mutations import HARMS, RAW, VALUES, Harm

_RUN = ["result.json", "experiment.json", "experiment.json", "config.toml"]
_FOLDER = ["results.json", "failed/*.json", "locks/*", "locks", "failed", "runs"]
_KEPT = ["milestones/*.npz", "measure-*.json", "source.json"]


def _of(method: str, *names: str) -> list[str]:
    return [f"runs/{method}-*/{name}" for name in names]


READS: dict[str, list[str]] = {
    "table1": [*_of("kmeans", *_RUN, "source.json"), *_FOLDER],
    "table2": [*_of("*", *_RUN, "*", ""), *_FOLDER],
    "cost": _of("*", "result.json", "experiment.json"),
    "readouts": _of("ae", "measure-readouts.json", "model/model.json", "model/weights.safetensors", "config.toml"),
    "systems": _of("*", "measure-probe.json", "result.json"),
    "figure1c": _of("dccm", "measure-curve.json", *_KEPT),
    "figure3": _of("dccm", "measure-map.json", *_KEPT),
    "figure5": _of("dccm", "measure-graphs.json", *_KEPT),
    "figure6a": _of("dccm", "measure-largest.json", *_KEPT),
}
"""Files of a results folder that each table and figure reads."""
SETTINGS: dict[str, object] = {
    "batch_size": 12,
    "mini_batch": 6,
    "critic_positions": 2,
    "starts": 1,
    "width": 0.1,
    "learning_rate": 1e-3,
}


def make(target: str, folder: Path) -> None:
    """What the command does, each run in this process."""
    arguments: dict[str, Any] = {"datasets": [f"own={folder.parent / 'bars.npz'}"], "methods": ["dccm", "kmeans", "ae"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "new_engine", lambda name, work, jobs: Here(work))
        patch.setattr(module, "make_run", _make_run)
        patch.setattr("dccm.experiments.grid._SECONDS_TO_LOOK_AGAIN", 0.1)
        made = reproduce(
            [target], output=folder, budget="passes:1", settings=SETTINGS, estimate=False, seeds=(0, 1), **arguments
        )
    for shown in made.shown.values():
        shown.text()
    for name, reason in made.missing.items():
        sentence(reason)
        sentence(name)


def sentence(text: str) -> None:
    """A reason is one line that anybody can read."""
    for sign in ("Traceback", "Error:", "\n", "\x1b"):
        assert sign not in text, f"no sentence, {text[:200]!r}"
    assert len(text) < 2000, f"no sentence, {text[:200]!r}"


def _make_run(spec: RunSpec, data: DataSets, results: Results, on_progress: OnProgress) -> None:
    from dccm.commands.one_run import make_run
    from dccm.errors import UserError

    if spec.method == "kmeans" and spec.seed == 1:
        raise UserError("mini_batch must not exceed 13. Lower it.")
    make_run(spec, data, results, on_progress)


def make_sound(folder: Path) -> Path:
    """A results folder in which every table and figure is made, and one run has failed."""
    found = bars(24, side=8)
    assert found.labels is not None
    np.savez(folder / "bars.npz", images=found.images, labels=found.labels)
    for target in READS:
        make(target, folder / "results")
    return folder / "results"


def swapped(path: Path, draw: random.Random) -> None:
    """The file of another run, as when folders were renamed."""
    others = sorted(other for other in path.parent.parent.glob(f"*/{path.name}") if other != path)
    if others:
        shutil.copy(draw.choice(others), path)


def overgrown(path: Path, draw: random.Random) -> None:
    """Lists and texts that have no end."""
    document = json.loads(path.read_text())
    name = draw.choice(list(document))
    value = document[name]
    many = [value] * 3000 if not isinstance(value, list) else value * 3000
    document[draw.choice([name, "x" * 200_000])] = draw.choice([many, "y" * 200_000, [many], {"a": many}])
    path.write_text(json.dumps(document))


def replaced(path: Path, draw: random.Random) -> None:
    """Another document altogether."""
    path.write_text(draw.choice([*RAW, *(json.dumps(value) for value in VALUES)]))


def in_the_place(path: Path, draw: random.Random) -> None:
    """A folder became a file, a link to nothing or to itself, or a folder of others."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    kind = draw.randrange(5)
    if kind == 0:
        path.write_text("{}")
    elif kind == 1:
        path.symlink_to(path)
    elif kind == 2:
        path.symlink_to("/proc/self")
    elif kind == 3:
        path.mkdir()
        (path / "experiment.json").mkdir()


def mutated(sound: Path, place: Path, target: str, seed: int) -> str:
    """A copy of a results folder in which one thing is harmed; which and how, for the reader of a failure."""
    draw = random.Random(f"{target} {seed}")
    shutil.copytree(sound, place / "results")
    shutil.copy(sound.parent / "bars.npz", place / "bars.npz")
    pattern = draw.choice(READS[target])
    files = sorted((place / "results").glob(pattern.rstrip("/")))
    path = draw.choice(files)
    harms: list[Harm] = HARMS.get(path.suffix, [in_the_place])
    if path.suffix == ".json":
        harms = [*harms, swapped, overgrown, replaced]
    harm = draw.choice(harms) if not path.is_dir() else in_the_place
    harm(path, draw)
    return f"{harm.__name__} of {path.relative_to(place)}, seed {seed}"
