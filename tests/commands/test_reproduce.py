"""The paper run again, on a few digits: what users see of it."""

import json
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm import cli
from dccm.cli.reproduce import _words
from dccm.commands.one_run import can_go_on, make_run
from dccm.commands.reproduce import Reproduced, command_lines, plan, reproduce
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.experiments import target_names
from dccm.experiments.data_sets import DataSets
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.runs.config import make_config
from dccm.training.progress import ignore
from tests.processes import Command
from tests.support import usual_signals

FEW = ["--datasets", "digits", "--limit-images", "128", "--budget", "passes:1", "--methods", "kmeans,nmf,ae"]
FEW += ["--no-estimate"]
PLANNED: dict[str, Any] = {
    "datasets": ["digits"], "limit_images": 128, "budget": "passes:1", "methods": ["kmeans", "nmf", "ae"]
}  # fmt: skip
SAME = PLANNED | {"estimate": False}
"""The same in Python."""
SEVENTEEN = ["table2", "table3", "--datasets", "digits", "--limit-images", "200", "--budget", "passes:2"]
SEVENTEEN += ["--no-estimate", "--quiet"]
"""As many runs, of seconds."""
SUFFIXES = (".md", ".csv", ".tex")


def dccm(*words: object) -> "subprocess.Popen[str]":
    """Begin a command in a process of its own."""
    command = [sys.executable, "-m", "dccm", "reproduce", *map(str, words)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, preexec_fn=usual_signals, **pipes)


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES}


def made_at(folder: Path) -> dict[str, int]:
    """When each run was finished."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("runs/*/experiment.json")}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduced]:
    """The paper on 200 digits, one pass each."""
    folder = tmp_path_factory.mktemp("all") / "results"
    return folder, reproduce(["all"], output=folder, budget="passes:1", limit_images=200, datasets=["digits"])


def test_every_table_and_figure_appears(everything: tuple[Path, Reproduced]) -> None:
    folder, made = everything
    assert made.missing == {}
    assert set(plan(["all"], datasets=["digits"]).targets) == set(made.shown)
    assert {name for name in target_names() if name.startswith(("table", "figure"))} == set(made.shown)
    for name, files in made.files.items():
        assert files, name
        assert all(file.stat().st_size for file in files), name
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert all(f'<section id="{name}">' in page for name in made.shown)
    assert not re.search(r"(src|href)=\"(https?:)?//|<script", page)
    reports = re.findall(r'<a href="(runs/[^"]+/report.html)"', page)
    assert len(reports) == len(list((folder / "runs").iterdir()))
    assert all((folder / report).is_file() for report in reports)
    assert made.shown["table2"].caption.endswith(
        "Budget passes:1 for each run; at most 200 images of each data set, drawn at random; one seed, 0; last epoch"
    )


def test_runs_are_ordinary_and_know_how_they_were_made(everything: tuple[Path, Reproduced]) -> None:
    folder, _ = everything
    for run in (folder / "runs").iterdir():
        assert {"config.toml", "result.json", "report.html", "assignments.csv", "experiment.json"} <= {
            path.name for path in run.iterdir()
        }
        result = json.loads((run / "result.json").read_text())
        assert result["cost"]["peak_memory_mb"] > 0
        record = json.loads((run / "experiment.json").read_text())
        assert min(record["wall_seconds"], record["cpu_seconds"]) > 0
        assert record["spec"]["method"] == result["method"]
        assert record["revision"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", record["revision"])


def test_tables_beyond_the_paper_use_the_same_runs(everything: tuple[Path, Reproduced]) -> None:
    folder, _ = everything
    before = made_at(folder)
    arguments: dict[str, Any] = {"budget": "passes:1", "limit_images": 200, "datasets": ["digits"]}
    made = reproduce(["cost", "significance", "table3"], output=folder, **arguments)
    assert made_at(folder) == before
    assert "images/s" in made.shown["cost"].text()
    assert "needs two seeds" in made.shown["significance"].text()


def test_systems_and_readouts_stand_in_for_scripts(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"methods": ["ae:paper", "kmeans"], "settings": {"learning_rate": 2e-3, "epochs": 1}}
    made = reproduce(
        ["systems", "readouts"], output=tmp_path, datasets=["digits"], limit_images=200, estimate=False, **asked
    )
    assert made.complete
    assert re.search(r"ae:paper( +\d\.\d{3}){3} +1\.0( +\d\.\d{3}){2}", made.shown["systems"].text())
    assert re.search(r"kmeans( +\d\.\d{3}){3} +–  +–  +–", made.shown["systems"].text())
    assert re.search(r"AE, untrained( +\d\.\d{3}){6}", made.shown["readouts"].text())
    said = (
        "preset paper of ae; epochs = 1 where a method has it; learning_rate = 0.002 where a method has it; last epoch"
    )
    assert said in made.shown["systems"].caption
    configs = {path.parent.name: path.read_text() for path in tmp_path.glob("runs/*/config.toml")}
    assert ["learning_rate = 0.002" in text for name, text in configs.items() if name.startswith("ae")] == [True, True]


def test_all_that_is_planned_could_be_begun() -> None:
    planned = plan(["all", "beyond"], datasets=["digits"], budget="minutes:1", seeds=(0, 1))
    assert set(planned.targets) == set(target_names())
    for spec in (need.spec for need in planned.needs):
        settings = dict(spec.settings) | {name: "folder" for name, _ in spec.after}
        make_config(spec.method, spec.preset, spec.dataset, settings)


def test_a_grid_that_is_killed_goes_on_and_ends_with_the_same_tables(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    reproduce(["table2", "table1"], output=whole, **SAME)
    command = Command(["reproduce", "table2", "table1", "-o", str(broken), *FEW], tmp_path / "said.txt")
    wait_for_a_run(broken, command)  # At some moment of the second one.
    command.signal(signal.SIGKILL)
    command.end()
    before = made_at(broken)
    assert 0 < len(before) < 3
    assert not (broken / "table2.md").exists()
    reproduce(["table2", "table1"], output=broken, **SAME)
    assert tables(broken) == tables(whole)
    assert len(tables(whole)) == 6
    assert {key: value for key, value in made_at(broken).items() if key in before} == before


def wait_for_a_run(folder: Path, command: Command) -> None:
    while not made_at(folder):
        assert command.running
        time.sleep(0.02)


@pytest.mark.slow
def test_a_grid_killed_at_random_moments_ends_with_the_same_tables(tmp_path: Path) -> None:
    # The same number of jobs, as that decides how many threads each has, and threads change the rounding.
    words = [*SEVENTEEN, "-j", "2"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert dccm(*words, "-o", whole).wait() == 0
    seed = int(os.environ.get("FAULT_SEED") or secrets.randbelow(2**31))
    print(f"FAULT_SEED={seed}")
    random = np.random.default_rng(seed)
    for done in sorted(random.choice(len(made_at(whole)) - 1, 3, replace=False)):
        process = dccm(*words, "-o", broken)
        while len(made_at(broken)) <= done:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        time.sleep(random.uniform(0, 3))  # Into the next runs.
        process.kill()
        process.wait()
    before = made_at(broken)
    assert dccm(*words, "-o", broken).wait() == 0
    assert tables(broken) == tables(whole)
    assert before.items() <= made_at(broken).items()
    assert len(made_at(broken)) == len(made_at(whole))


@pytest.mark.slow
def test_two_commands_begun_at_once_make_each_run_once(tmp_path: Path) -> None:
    words = [*SEVENTEEN, "-j", "1"]
    alone, both = tmp_path / "alone", tmp_path / "both"
    commands = [dccm(*words, "-o", both) for _ in range(2)]
    seen: dict[str, set[int]] = {}
    while any(command.poll() is None for command in commands):
        for key, moment in made_at(both).items():
            seen.setdefault(key, set()).add(moment)
        time.sleep(0.02)
    assert [command.returncode for command in commands] == [0, 0]
    assert {len(moments) for moments in seen.values()} == {1}
    assert dccm(*words, "-o", alone).wait() == 0
    assert seen.keys() == made_at(alone).keys()
    assert tables(both) == tables(alone)


def test_two_processes_share_the_runs_and_repeat_none(tmp_path: Path) -> None:
    command = Command(["reproduce", "table2", "-o", str(tmp_path / "results"), *FEW], tmp_path / "said.txt")
    wait_for_a_run(tmp_path / "results", command)
    before = made_at(tmp_path / "results")
    made = reproduce(["table2"], output=tmp_path / "results", jobs=2, **SAME)
    code, said = command.end()
    assert code == 0
    assert len(made_at(tmp_path / "results")) == 3
    assert before.items() <= made_at(tmp_path / "results").items()
    assert made.missing == {}
    assert made.shown["table2"].text() in said  # Both end with the whole table.


def test_ctrl_c_says_that_the_same_command_goes_on(tmp_path: Path) -> None:
    command = Command(["reproduce", "table2", "-o", str(tmp_path / "results"), *FEW], tmp_path / "said.txt")
    wait_for_a_run(tmp_path / "results", command)
    command.signal(signal.SIGINT)
    code, said = command.end()
    assert code == 130
    assert "Interrupted. What is done so far is kept: the same command goes on from there." in said
    assert "Traceback" not in said
    assert list((tmp_path / "results" / "failed").iterdir()) == []


def test_commands_for_a_scheduler_make_one_run_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["table1", "table2", "-o", str(tmp_path / "results"), *FEW]
    monkeypatch.setattr(sys, "argv", ["dccm", "reproduce", *words, "--print-commands"])
    run_main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("dccm reproduce table1 table2 --output ") for line in lines)
    monkeypatch.setattr(sys, "argv", shlex.split(next(line for line in lines if "--only nmf" in line)))
    run_main()
    results = Results(tmp_path / "results")
    assert [key.split("-")[0] for key in made_at(results.path)] == ["nmf"]
    assert not (results.path / "table2.md").exists()
    assert len(command_lines(["table1", "table2"], output=results.path, **PLANNED)) == 2


def test_a_run_of_another_version_begins_anew(tmp_path: Path) -> None:
    results, data = Results(tmp_path), DataSets()
    spec = Request(limit=100).spec("kmeans", "digits")
    make_run(spec, data, results, ignore)
    directory, settings = results.run(spec), {"seed": 0}
    assert can_go_on(directory, spec, settings)
    assert not can_go_on(directory, spec, {"seed": 1})
    directory.config.write_text(directory.config.read_text().replace("n_clusters", "number"))
    assert not can_go_on(directory, spec, settings)
    make_run(spec, data, results, ignore)
    assert can_go_on(directory, spec, settings)


def test_commas_part_names_but_no_paths() -> None:
    assert _words(["cifar10,mnist", "own=/a,b.parquet,dccm:fast"]) == [
        "cifar10",
        "mnist",
        "own=/a,b.parquet",
        "dccm:fast",
    ]
    assert _words(None) == []


def run_main() -> None:
    """Run the command line in this process; what it prints is captured."""
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code


def test_failed_runs_leave_a_dash_a_reason_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = bars(12, side=8)
    assert found.labels is not None
    np.savez(tmp_path / "bars.npz", images=found.images, labels=found.labels)
    words = ["table2", "-o", tmp_path / "results", "--datasets", f"own={tmp_path / 'bars.npz'}", "--budget", "passes:1"]
    words += ["--methods", "kmeans,ae", "--set", "learning_rate=1e9", "-q"]
    monkeypatch.setattr(sys, "argv", ["dccm", "reproduce", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    said = capsys.readouterr()
    assert "Lower the learning rate" in said.err
    assert "Not all could be made" in said.out
    assert re.search(r"AE +– +– +–", said.out)
    page = (tmp_path / "results" / "index.html").read_text()
    assert re.search("ae on own[^<]* seed 0: [^<]*Lower the learning rate", page)


def test_two_hundred_clusters_as_in_tiny_imagenet(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(600) % 200
    pixels = random.integers(20, 236, (200, 16, 16, 3))[labels] + random.integers(-20, 20, (600, 16, 16, 3))
    np.savez(tmp_path / "tiny.npz", images=pixels.astype(np.uint8), labels=labels)
    arguments: dict[str, Any] = {"datasets": [f"tiny={tmp_path / 'tiny.npz'}"], "methods": ["kmeans", "dccm"]}
    made = reproduce(["table2"], output=tmp_path / "results", budget="passes:1", estimate=False, **arguments)
    assert made.missing == {}
    configs = [path.read_text() for path in (tmp_path / "results" / "runs").glob("*/config.toml")]
    assert len(configs) == 2
    assert all("n_clusters = 200" in text for text in configs)
    [kmeans, dccm] = [json.loads(path.read_text())["scores"] for path in sorted(_results(tmp_path), reverse=True)]
    assert kmeans["nmi"] > 0.9
    assert dccm["nmi"] > 0.5  # By chance three of 600 images in 200 clusters agree on a lot.


def _results(folder: Path) -> list[Path]:
    return list((folder / "results" / "runs").glob("*/result.json"))


@pytest.mark.parametrize(
    ("targets", "planning", "said"),
    [
        (["tabel2"], {}, "No table or figure 'tabel2'. Did you mean 'table2'? See \"dccm reproduce --help\"."),
        (["table2"], {"datasets": ["imagenet10"]}, "Give its place: imagenet10=PATH."),
        (["table2"], {"methods": ["dcm"], "datasets": ["digits"]}, "No method 'dcm'. Did you mean 'dccm'?"),
        (["table3"], {"methods": ["dac"], "datasets": ["digits"]}, "Nothing can be made for table3: they have no such"),
        (["table3"], {}, "Nothing can be made for table3: of their data sets nothing is there: CIFAR-10 is not in "),
        (
            ["table2"],
            {"budget": "hours:1", "datasets": ["digits"]},
            "budget must be minutes:M or passes:P, got 'hours:1'",
        ),
    ],
)
def test_what_cannot_be_made_is_one_sentence_and_nothing_is_written(
    targets: list[str], planning: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        reproduce(targets, output=tmp_path / "results", data_root=tmp_path / "data", **planning)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "results").exists()
