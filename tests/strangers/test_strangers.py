"""Whatever a stranger put into a run directory: what reads it ends in a sentence, in time, or works."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from dccm import UserError, cluster
from dccm.commands.compare import compare
from dccm.commands.evaluate import evaluate
from dccm.commands.export import export
from dccm.commands.judge import judge
from dccm.commands.predict import predict
from dccm.corrections.change import Change
from dccm.corrections.of_run import open_log
from dccm.data.images import Duplicate
from dccm.data.synthetic import bars
from dccm.gallery.gallery import opened
from dccm.report import write_report
from dccm.runs.choice import Choice, write_choice
from dccm.runs.directory import RunDirectory
from dccm.training.checkpoint import _checksum, read_tensors, write_tensors
from tests.strangers.mutations import READS, mutated

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes by name and alarms are Unix's")

IMAGES = bars(24, side=8)
SETTINGS = {
    "batch_size": 12,
    "mini_batch": 6,
    "critic_positions": 2,
    "starts": 1,
    "width": 0.1,
    "checkpoint_minutes": 0,
}
SECONDS, AT_MOST = 10, 60
"""That a command may compute, and that it may take on a busy machine."""
FEW = {
    "report": 45,
    "judge": 15,
    "evaluate": 25,
    "predict": 25,
    "resume": 10,
    "compare": 15,
    "export": 15,
    "serve": 15,
    "improve": 4,
}
MANY = dict.fromkeys(FEW, 800) | {"report": 2400}


def make_sound(folder: Path) -> Path:
    """A run with every file that there can be, and labels beside it."""
    output = folder / "run"
    cluster(IMAGES, 3, output=output, preset="paper", settings=SETTINGS, epochs=2, device="cpu", seed=0)
    curve = [0.5, 0.4]
    choice = Choice("auto", "pixels", 24, 0, [2, 3], curve, curve, curve, curve, 2, 3, "sure", [[0.0, 1.0, 0.5]])
    write_choice(output / "choice.json", choice)
    directory = RunDirectory(output)
    log = open_log(directory, directory.read_assignments(), 3)
    merge, name = Change(kind="merge", clusters=(0, 1), cluster=1), Change(kind="rename", name="bars", cluster=1)
    for change in (Change(kind="move", images=(0, 1), cluster=2), Change(kind="undo", change=1), merge, name):
        log.add(change, "somebody")
    log.close()
    directory.write_near_duplicates([Duplicate(IMAGES.names[1], IMAGES.names[0])])
    assert IMAGES.labels is not None
    np.save(folder / "labels.npy", IMAGES.labels)
    return output


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sound(tmp_path_factory.mktemp("strangers"))


def _export(run: Path) -> None:
    """In the two formats that read the most."""
    export(run, "jsonl", run.parent / "new.jsonl", embedding=True)
    export(run, "safetensors", run.parent / "new.safetensors")


def _serve(run: Path) -> None:
    """All that the page of the gallery asks for at first."""
    gallery = opened(run, run.parent / "cache")
    gallery.warm()
    for ask in (gallery.describe, gallery.points, gallery.judgement, gallery.changes, gallery.map):
        ask()
    gallery.details(range(len(gallery)))
    gallery.neighbours(0)


COMMANDS: dict[str, Callable[[Path], object]] = {
    "report": lambda run: write_report(RunDirectory(run)),
    "judge": lambda run: judge(run, run),
    "evaluate": lambda run: evaluate(run, run.parent / "labels.npy"),
    "predict": lambda run: predict(run, IMAGES, device="cpu", output=run.parent / "new"),
    "resume": lambda run: cluster(IMAGES, output=run, resume=True, epochs=3, device="cpu"),
    "compare": lambda run: compare(run, run),
    "export": _export,
    "serve": _serve,
    "improve": lambda run: cluster(IMAGES, improve=run, output=run.parent / "new", budget="passes:1", device="cpu"),
}


@contextmanager
def in_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = {number: signal.signal(number, stop) for number in (signal.SIGALRM, signal.SIGPROF)}
    signal.alarm(AT_MOST)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def outcome(command: str, sound: Path, place: Path, seed: int) -> str:
    """What is wrong with how a command took a harmed directory; nothing if it worked or ended in a sentence."""
    run = place / "run"
    harm = mutated(sound, run, command, seed)
    os.link(sound.parent / "labels.npy", place / "labels.npy")
    try:
        with in_time():
            COMMANDS[command](run)
    except UserError as error:
        return "" if len(str(error)) < 2000 and "\n" not in str(error) else f"{harm}: no sentence, {str(error)[:200]!r}"
    except Exception as error:
        return f"{harm}: {type(error).__name__} {str(error)[:200]}"
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", READS)
def test_harmed_directories_end_in_sentences(command: str, sound: Path, tmp_path: Path) -> None:
    _try_all(command, sound, tmp_path, FEW[command])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", READS)
def test_thousands_of_harmed_directories_end_in_sentences(command: str, sound: Path, tmp_path: Path) -> None:
    _try_all(command, sound, tmp_path, MANY[command])


def _try_all(command: str, sound: Path, place: Path, count: int) -> None:
    problems = []
    for seed in range(count):
        here = place / str(seed)
        here.mkdir()
        problems.append(outcome(command, sound, here, seed))
    wrong = list(filter(None, problems))
    print(f"{command}: {count} directories, {len(wrong)} without a sentence", file=sys.stderr)
    assert not wrong, "\n".join(wrong)


def test_the_sound_directory_is_read_by_all(sound: Path, tmp_path: Path) -> None:
    assert all(sound.joinpath(name).exists() for names in READS.values() for name in names if "*" not in name)
    for command in READS:
        here = tmp_path / command
        here.mkdir()
        os.link(sound.parent / "labels.npy", here / "labels.npy")
        shutil.copytree(sound, here / "run")
        COMMANDS[command](here / "run")


def edited(sound: Path, place: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a run in which a document was edited."""
    run = place / "run"
    shutil.copytree(sound, run)
    document = json.loads((run / name).read_text())
    edit(document)
    (run / name).write_text(json.dumps(document))
    return run


def reweighted(sound: Path, place: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> Path:
    """A copy of a run with other weights in its model."""
    run = place / "run"
    shutil.copytree(sound, run)
    tensors, document = read_tensors(run / "model" / "weights.safetensors")
    name = next(name for name, tensor in tensors.items() if tensor.ndim > 1)
    write_tensors(run / "model" / "weights.safetensors", tensors | {name: change(tensors[name])}, document)
    return run


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensor: torch.full_like(tensor, torch.nan), "holds values that are no finite numbers, in "),
        (lambda tensor: torch.full_like(tensor, torch.inf), "holds values that are no finite numbers, in "),
        (lambda tensor: tensor.bfloat16(), "must be torch.float32, got torch.bfloat16"),
        (lambda tensor: tensor.flatten(), r"do not fit the network that model.json describes \(.* must be \("),
    ],
)
def test_weights_that_cannot_be_are_refused(
    sound: Path, tmp_path: Path, change: Callable[[torch.Tensor], torch.Tensor], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        predict(reweighted(sound, tmp_path, change), IMAGES, device="cpu")


def test_a_deep_document_in_a_file_of_weights_is_refused(sound: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound, run)
    path, deep = run / "model" / "weights.safetensors", "[" * 100_000
    tensors = read_tensors(path).tensors
    path.write_bytes(save(tensors, {"dccm": _checksum(tensors, deep) + deep}))
    with pytest.raises(UserError, match="nested deeper than 16 levels"):
        COMMANDS["predict"](run)


@pytest.mark.parametrize("count", [10**9, 2**62])
@pytest.mark.parametrize("command", ["report", "predict"])
def test_a_run_of_a_billion_clusters_takes_no_memory(sound: Path, tmp_path: Path, command: str, count: int) -> None:
    run = edited(sound, tmp_path, "result.json", lambda document: document.update(n_clusters=count, n_images=count))
    if command == "report":
        with pytest.raises(UserError, match=r"assignments\.csv is broken \(24 images, but result\.json counts"):
            COMMANDS[command](run)
    else:  # What is said of training is left out, and the images are assigned.
        (run / "corrections.sqlite").unlink()
        COMMANDS[command](run)
        assert "24 images, but result.json counts" in (run.parent / "new" / "report.html").read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model/model.json", "is not a model description of dccm"),
        ("result.json", "nested deeper than 16 levels"),
        ("config.toml", "nested deeper than 16 levels"),
        ("history.jsonl", "nested deeper than 16 levels"),
    ],
)
def test_a_document_as_deep_as_it_is_long_ends_in_a_sentence(
    sound: Path, tmp_path: Path, name: str, words: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound, run)
    text = "a = " * (name == "config.toml") + "[" * 100_000
    (run / name).write_text(text)
    command = {"model/model.json": "predict", "config.toml": "resume"}.get(name, "report")
    with pytest.raises(UserError, match=words):
        COMMANDS[command](run)


@pytest.mark.parametrize("kept", [(24, 1), (24, 5000), (24, 64)])
def test_an_embedding_that_is_not_of_the_model_teaches_nothing(
    sound: Path, tmp_path: Path, kept: tuple[int, int]
) -> None:
    run = Path(shutil.copytree(sound, tmp_path / "run"))
    np.save(run / "embedding.npy", np.full(kept, np.nan, np.float32))
    with pytest.raises(UserError, match=r"The embedding in .*run is not of its model\. Take a sound copy of the run"):
        COMMANDS["improve"](run)


def test_a_model_of_another_network_than_the_settings_say_is_not_gone_on_from(sound: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(sound, tmp_path / "run"))
    text = (run / "config.toml").read_text()
    assert "\nwidth = 0.1\n" in text
    (run / "config.toml").write_text(text.replace("\nwidth = 0.1\n", "\nwidth = 0.2\n"))
    with pytest.raises(UserError, match="is not of the network that its config.toml describes"):
        COMMANDS["improve"](run)
