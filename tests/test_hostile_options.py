"""Every option and argument of every command, with values that nobody means: a sentence, in time, and no trace of it.

`make test` tries a few values of each, others for each; `make slow` all of them.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.main import get_command

from dccm import cli, cluster
from dccm.cli import app
from dccm.data.synthetic import bars
from dccm.evaluation.probe import ProbeConfig
from tests.data.pictures import photos
from tests.experiments.stand_ins import Here
from tests.networks.onnx_files import write_onnx
from tests.strangers.test_strangers import in_time
from tests.test_json import commands

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes by name and alarms are Unix's"),
    pytest.mark.filterwarnings("ignore"),
]
VALUES = {
    "empty": "",
    "minus": "-1",
    "nan": "nan",
    "endless": "1e999",
    "raised": "²",
    "digits": "9" * 23,
    "word": "x" * 10_000,
    "zeros": "zeros",
    "lines": "a\nb\x1b[2J\u202e",
    "loop": "loop",
    "pipe": "pipe",
    "equals": "=",
    "bytes": "\udcff\udcfe",
}
"""`loop` is a link to itself, `pipe` one by name into which nobody writes, `zeros` leads to a device without end."""
FEW = 2
ALLOWED = {"reproduce": (0, 1, 2), "cache check": (0, 1, 2)}
"""Exit codes: 1 says that not all could be made, or that something is damaged."""
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
QUICK = ["-q", "--cache", "cache"]
BASES = {
    "demo": ["-o", "new", "-q", "--set", "epochs=1"],
    "cluster": ["bars.npz", "-k", "3", "-m", "kmeans", "-o", "new", *QUICK],
    "prepare": ["photos", *QUICK],
    "evaluate": ["run", "--labels", "labels.npy"],
    "probe": ["run", "bars.npz", "--test-share", "0.5", *QUICK],
    "report": ["run"],
    "choose-k": ["bars.npz", "-k", "2..3", "--encoder", "onnx:tiny.onnx", *QUICK],
    "compare": ["run", "run"],
    "embed": ["bars.npz", "--encoder", "onnx:tiny.onnx", "-o", "new", *QUICK],
    "encoders": [],
    "export": ["run", "--to", "csv", "-o", "new"],
    "serve": ["run"],
    "corrections": ["run"],
    "judge": ["run", "run", "--cache", "cache"],
    "presets": [],
    "predict": ["run", "bars.npz", "-o", "new", *QUICK],
    "reproduce": ["table2", "-o", "new", "--datasets", "own=bars.npz", "--methods", "kmeans", "-q", "--no-estimate"],
    "cache size": ["--cache", "cache"],
    "cache list": ["--cache", "cache"],
    "cache check": ["--cache", "cache"],
    "cache clear": ["--cache", "cache"],
}
"""Words with which each command does its work."""


class Case(NamedTuple):
    """A command with one value that is hostile."""

    command: str
    parameter: str
    value: str
    words: list[str]

    def __str__(self) -> str:
        return f"{self.command} {self.parameter} {self.value}".replace(" ", "_")


def all_cases() -> Iterator[Case]:
    for command, found in commands(get_command(app)).items():
        place = 0
        for parameter in found.params:
            if getattr(parameter, "is_flag", False):
                continue
            is_argument = parameter.param_type_name == "argument"
            name = parameter.name if is_argument else parameter.opts[-1]
            for value in VALUES:
                words = _words(command, parameter.opts, place if is_argument else None, VALUES[value])
                yield Case(command, name, value, [*command.split(), *words])
            place += is_argument


def _words(command: str, options: list[str], place: int | None, value: str) -> list[str]:
    """The words of a command, of which one is another, or one more."""
    words = list(BASES[command])
    if place is None:
        return [*words, options[-1], value]
    first = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    arguments = [*words[:place], value, *words[place + 1 : first]] if place < first else [*words[:first], value]
    return [*words[first:], "--", *arguments]


def a_few(cases: Iterator[Case]) -> Iterator[Case]:
    """A few values of each parameter, other ones for each."""
    by_parameter: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        by_parameter.setdefault(case[:2], []).append(case)
    for place, own in enumerate(by_parameter.values()):
        yield from (own[(FEW * place + number) % len(own)] for number in range(FEW))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder to be in, with a run, images, and what is neither."""
    folder = tmp_path_factory.mktemp("hostile")
    found = bars(24, side=8)
    assert found.labels is not None
    np.savez(folder / "bars.npz", images=found.images, labels=found.labels)
    np.save(folder / "labels.npy", found.labels)
    photos(folder / "photos", 3)
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    (folder / "zeros").symlink_to("/dev/zero")
    write_onnx(folder / "tiny.onnx")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DCCM_CACHE", str(folder / "cache"))
        patch.setattr("dccm.gallery.server.serve", lambda *_: None)
        patch.setattr("dccm.data.datasets.load_digits", lambda: found)
        patch.setattr("dccm.commands.reproduce.new_engine", lambda name, work, jobs: Here(work))
        patch.setattr("dccm.commands.probe.ProbeConfig", partial(ProbeConfig, epochs=1, fewest_steps=1))
        patch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"")))
        settings: dict[str, Any] = {"batch_size": 12, "mini_batch": 6, "critic_positions": 2, "starts": 1, "width": 0.1}
        cluster("bars.npz", 3, output="run", preset="paper", settings=settings, epochs=1, device="cpu", cache="cache")
        yield folder


def there(folder: Path) -> set[str]:
    """What is in a folder, but for the cache."""
    return {str(path) for path in folder.rglob("*") if "cache" not in path.parts}


def wrong(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What is wrong with how a command took a value; nothing if it worked, or ended in a sentence."""
    before = there(folder)
    monkeypatch.setattr(sys, "argv", ["dccm", *case.words])
    try:
        with in_time():
            cli.main()
            code: Any = 0
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]!r}"
    out, said = capsys.readouterr()
    left = sorted(there(folder) - before)
    problems = [f"exit code {code}"] * (code not in ALLOWED.get(case.command, (0, 2)))
    problems += [f"it shows {sign!r}" for sign in sorted(set(ACTING.findall(out + said)))]
    problems += ["a traceback"] * ("Traceback" in said)
    problems += [f"{len(said):,} characters are said"] * (code == 2 and len(said) > 2500)
    problems += ["nothing is said"] * (code == 2 and not said.strip())
    problems += [f"{', '.join(left)[:200]} is left behind"] * bool(code == 2 and left)
    for path in left:
        remove(Path(path))
    return "; ".join(problems) + f" {said[-300:]!r}" * bool(problems)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def try_all(
    cases: Iterable[Case], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {str(case): wrong(case, folder, monkeypatch, capsys) for case in cases}
    assert not any(found.values()), "\n".join(f"{name}: {problem}" for name, problem in found.items() if problem)


@pytest.mark.parametrize("command", BASES)
def test_hostile_values_end_in_sentences(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try_all(a_few(case for case in all_cases() if case.command == command), place, monkeypatch, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("command", BASES)
def test_all_hostile_values_end_in_sentences(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try_all((case for case in all_cases() if case.command == command), place, monkeypatch, capsys)


def test_every_command_with_an_option_is_tried() -> None:
    assert {case.command for case in all_cases()} == set(BASES)


@pytest.mark.parametrize("value", VALUES)
def test_commands_that_are_none_end_in_sentences(
    value: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [[VALUES[value]], ["cache", VALUES[value]], ["methods", VALUES[value]], ["report", "--" + VALUES[value]]]
    cases = [Case("", " ".join(one), value, one) for one in words]
    try_all(cases, place, monkeypatch, capsys)
