"""Everything that reads bytes of strangers, each as one function of bytes; nothing but `UserError` may come out."""

import io
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from dccm.corrections.change import Change
from dccm.corrections.log import CorrectionLog
from dccm.corrections.state import State
from dccm.data.decode import Preparation
from dccm.data.decoding import outcome_of, read_item
from dccm.data.read import open_source
from dccm.errors import UserError
from dccm.runs.contents import Assignments
from tests.data.pictures import png
from tests.data.sources.archives import tar, zipped
from tests.data.test_fuzz import sound_files

MOST_IMAGES = 40
"""Of a source that are read: what it lists may be much."""
WANTED = Preparation((16, 16))


@dataclass(frozen=True)
class Reader:
    """One kind of bytes."""

    read: Callable[[bytes, Path], None]
    """Content, and a folder that is its own."""
    seeds: Callable[[], Iterable[bytes]]
    """Sound examples, from which a fuzzer sets out."""


def _image(content: bytes, folder: Path) -> None:
    """Not even a sentence may come of one image: it would stop all others."""
    try:
        outcome = outcome_of(content, WANTED)
    except UserError as error:
        raise AssertionError("one image stops the run") from error
    assert (outcome.pixels is not None) or outcome.reason


def _source(name: str) -> Callable[[bytes, Path], None]:
    def read(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        source = open_source(path)
        for place in range(min(len(source), MOST_IMAGES)):
            item = read_item(source, place)
            if isinstance(item, bytes):
                _image(item, folder)
        assert len(list(source.skipped)) >= 0

    return read


def _archives(name: str) -> Callable[[], Iterable[bytes]]:
    def seeds() -> Iterable[bytes]:
        make = zipped if name.endswith(".zip") else tar
        members = {"a.png": png(0, 8), "b/c.png": png(1, 8), "notes.txt": b"none"}
        with tempfile.TemporaryDirectory() as folder:
            yield make(Path(folder) / name, members).read_bytes()
            yield make(Path(folder) / name, {"x" * 200 + ".png": png(2, 8), "../up.png": png(3, 8)}).read_bytes()

    return seeds


def _npy() -> Iterable[bytes]:
    for array in (np.zeros((3, 8, 8), np.uint8), np.zeros((2, 8, 8, 3), np.float32), np.asfortranarray(np.eye(9))):
        buffer = io.BytesIO()
        np.save(buffer, array)
        yield buffer.getvalue()


def _npz() -> Iterable[bytes]:
    arrays = {"images": np.zeros((3, 8, 8), np.uint8), "labels": np.arange(3), "splits": np.array(["train"] * 3)}
    for save in (np.savez, np.savez_compressed):
        buffer = io.BytesIO()
        save(buffer, **arrays)  # type: ignore[arg-type]
        yield buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("x.npy", b"\x93NUMPY\x01\x00")
    yield buffer.getvalue()


def _parquet() -> Iterable[bytes]:
    import pyarrow
    from pyarrow import parquet

    rows = [{"bytes": png(number, 8), "path": f"{number}.png"} for number in range(3)]
    for compression in ("none", "snappy", "zstd"):
        buffer = io.BytesIO()
        parquet.write_table(pyarrow.table({"image": rows, "label": [0, 1, 2]}), buffer, compression=compression)
        yield buffer.getvalue()


def _lists() -> Iterable[bytes]:
    yield b'path,label,split\na.png,1,train\n"b,\n.png",2,test\n'
    yield b"\xef\xbb\xbfpath\r\n\xff\xfe.png\r\n/dev/zero\r\n"


RUN = (
    *("config.toml", "source.json", "history.jsonl", "assignments.csv", "result.json", "thumbnails.npz", "skipped.csv"),
    *("duplicates.csv", "embedding.npy", "model/model.json", "model/weights.safetensors"),
)
"""Files of a run directory, one of which a stranger has changed."""


@cache
def run_files() -> dict[str, bytes]:
    """Of a small finished run."""
    import dccm
    from dccm.data.synthetic import bars

    with tempfile.TemporaryDirectory() as folder:
        small = {"mini_batch": 8, "batch_size": 40, "critic_positions": 2, "uses": 1, "starts": 1, "seed": 0}
        found = bars(40, side=8)
        dccm.cluster(found, 3, epochs=1, preset="fast", settings=small, output=Path(folder) / "run")
        files = {path: (Path(folder) / "run").glob(path) for path in (*RUN, "checkpoints/*.safetensors")}
        return {path: next(iter(place)).read_bytes() for path, place in files.items()}


def _changed_run(content: bytes, folder: Path) -> Path:
    """The run directory in which the file that the first byte names holds the rest."""
    files = run_files()
    changed = sorted(files)[content[0] % len(files)] if content else "config.toml"
    for name, sound in files.items():
        path = folder / name.replace("*", "000000001")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[1:] if name == changed else sound)
    return folder


def _run_seeds() -> Iterable[bytes]:
    for number, name in enumerate(sorted(run_files())):
        yield bytes([number]) + run_files()[name]


def _run(content: bytes, folder: Path) -> None:
    from dccm.runs.directory import RunDirectory

    run = RunDirectory(_changed_run(content, folder))
    for read in (run.read_config, run.read_history, run.read_assignments, run.read_skipped, run.read_result):
        try:
            read()
        except UserError:
            continue


def _report(content: bytes, folder: Path) -> None:
    from dccm.report import write_report
    from dccm.runs.directory import RunDirectory

    write_report(RunDirectory(_changed_run(content, folder)))


def _one_file(name: str) -> Callable[[], Iterable[bytes]]:
    return lambda: [run_files()[name]]


def _model(content: bytes, folder: Path) -> None:
    """The first byte says which of the two files is changed."""
    from dccm.runs.model import Model

    files = {name: run_files()[f"model/{name}"] for name in ("model.json", "weights.safetensors")}
    files[sorted(files)[content[0] % 2] if content else "model.json"] = content[1:]
    for name, sound in files.items():
        (folder / name).write_bytes(sound)
    Model.load(folder, "cpu")


def _model_seeds() -> Iterable[bytes]:
    yield b"\0" + run_files()["model/model.json"]
    yield b"\1" + run_files()["model/weights.safetensors"]


def _checkpoint(content: bytes, folder: Path) -> None:
    from dccm.training.checkpoint import CheckpointFolder

    (folder / "000000001.safetensors").write_bytes(content)
    CheckpointFolder(folder).newest()


def _few() -> State:
    """Four images in two clusters."""
    none = np.zeros(4, bool)
    return State.of_run(Assignments(list("abcd"), np.array([0, 1, 0, 1]), np.ones(4), none, none), 2)


def _log(content: bytes, folder: Path) -> None:
    path = folder / "corrections.sqlite"
    path.write_bytes(content)
    with closing(CorrectionLog(path, _few(), read_only=True)) as log:
        assert len(log.replay.state.clusters) == 4


def _logs() -> Iterable[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corrections.sqlite"
        with closing(CorrectionLog(path, _few())) as log:
            for change in (Change(kind="move", images=(0,), cluster=1), Change(kind="undo", change=1)):
                log.add(change, "somebody")
        yield path.read_bytes()


READERS = {
    "image": Reader(_image, lambda: [content for _, content in sound_files()]),
    **{kind: Reader(_source(f"a.{kind}"), _archives(f"a.{kind}")) for kind in ("zip", "tar", "tar.gz", "tar.xz")},
    "npy": Reader(_source("a.npy"), _npy),
    "npz": Reader(_source("a.npz"), _npz),
    "parquet": Reader(_source("a.parquet"), _parquet),
    "csv": Reader(_source("a.csv"), _lists),
    "txt": Reader(_source("a.txt"), _lists),
    "model": Reader(_model, _model_seeds),
    "checkpoint": Reader(_checkpoint, _one_file("checkpoints/*.safetensors")),
    "run": Reader(_run, _run_seeds),
    "report": Reader(_report, _run_seeds),
    "log": Reader(_log, _logs),
}
