"""Shards through a model: every image once, whatever happens on the way."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from dccm.commands.cluster import cluster
from dccm.commands.predict import predict
from dccm.commands.shards import predict_shards
from dccm.corrections.change import Change
from dccm.corrections.of_run import open_log
from dccm.data.sources import shards as shards_module
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.fleet import engines
from dccm.fleet import run as module
from dccm.fleet.output import Output
from dccm.fleet.run import Summary
from dccm.fleet.table import Table
from dccm.runs.directory import RunDirectory
from tests.data.pictures import encoded, put, tree
from tests.data.sources.archives import tar
from tests.faults.machines import remounted, small_disk
from tests.test_cli import dccm

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

IMAGES = bars(40, side=8).images[..., 0]


def pictures(*numbers: int) -> dict[str, bytes]:
    return {f"{number}.png": encoded(IMAGES[number]) for number in numbers}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = cluster(IMAGES, 4, "kmeans", output=tmp_path_factory.mktemp("model") / "run", settings={"device": "cpu"})
    return made.directory.path


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Four shards of ten pictures each; one picture is broken."""
    (tmp_path / "shards").mkdir()
    for number in range(4):
        members = pictures(*range(10 * number, 10 * number + 10))
        tar(tmp_path / "shards" / f"{number}.tar", members | ({"3.png": b"nothing"} if number == 0 else {}))
    return tmp_path / "shards"


@pytest.fixture
def bucket(shards: Path) -> Iterator[str]:
    storage = fsspec.filesystem("memory")
    for path in shards.iterdir():
        storage.pipe_file(f"/bucket/shards/{path.name}", path.read_bytes())
    yield "memory://bucket"
    storage.rm("/bucket", recursive=True)


def rows(output: Path | str) -> list[dict[str, Any]]:
    """All rows of all results, in the order of the shards."""
    storage, path = fsspec.core.url_to_fs(str(output))
    found = sorted(storage.glob(f"{path}/**/*.parquet"))
    return [row for name in found for row in parquet.read_table(storage.open(name)).to_pylist()]


def assigned(model: Path, images: Any, output: Path | str, **others: Any) -> Summary:
    return predict_shards(model, str(images), output, device="cpu", **others)


def test_every_image_is_assigned_as_by_the_usual_command(model: Path, shards: Path, tmp_path: Path) -> None:
    usual = predict(model, str(shards), device="cpu", cache=tmp_path / "cache")
    for name, processes in (("one", 1), ("two", 2)):
        summary = assigned(model, shards, tmp_path / name, processes=processes)
        assert (summary.shards, summary.images, summary.skipped, summary.missing) == (4, 39, 1, [])
        found = rows(tmp_path / name)
        assert [row["path"] for row in found if row["reason"] is None] == list(usual.assignments.paths)
        assert [row["cluster"] for row in found if row["reason"] is None] == usual.assignments.clusters.tolist()
        assert [row for row in found if row["reason"]] == [
            {"path": "0.tar/3.png", "cluster": None, "confidence": None, "best": None, "outlier": None}
            | {"reason": "not an image of a known format"}
        ]
    assert tables(tmp_path / "one") == tables(tmp_path / "two")


def tables(output: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.name: parquet.read_table(path).to_pylist() for path in output.glob("*.parquet")}


def test_a_storage_takes_the_results_and_says_what_they_are(model: Path, bucket: str) -> None:
    assigned(model, f"{bucket}/shards/*.tar", f"{bucket}/out")
    storage = fsspec.filesystem("memory")
    manifest = json.loads(storage.cat_file("/bucket/out/manifest.json"))
    assert {name: manifest[name] for name in ("shards", "images", "skipped", "missing")} == {
        "shards": 4, "images": 39, "skipped": 1, "missing": 0,
    }  # fmt: skip
    assert manifest["of"]["images"] == f"{bucket}/shards/*.tar"
    assert storage.cat_file("/bucket/out/shards.csv").decode().splitlines()[1].startswith("0.tar,9,1,0,")
    assert len(rows(f"{bucket}/out")) == 40


def test_what_is_done_stays_and_what_is_new_or_changed_is_done(model: Path, shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assigned(model, shards, out)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    tar(shards / "4.tar", pictures(1, 2))
    tar(shards / "1.tar", pictures(7))
    assert assigned(model, shards, out).images == 9 + 1 + 20 + 2
    now = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert sorted(name for name in now if now[name] != before.get(name)) == ["1.tar.parquet", "4.tar.parquet"]


def test_a_result_that_the_list_does_not_know_yet_is_not_done_again(
    model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assigned(model, shards, out)
    (out / "shards.csv").unlink()
    put(out / "2.tar.parquet", b"PAR1 half of it")
    told: list[int] = []

    def noted(*given: Any) -> Any:
        told.append(len(given[3]))
        return engines.done_by(*given)

    monkeypatch.setattr(module, "done_by", noted)
    assert assigned(model, shards, out).images == 39
    assert told == [1]


def test_a_kill_in_the_middle_loses_and_doubles_nothing(model: Path, shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"""
import os, signal
from dccm.commands import shards
from dccm.fleet import shard
put = shard.put
def dying(copy, place):
    if place.endswith("2.tar.parquet"):
        os.kill(os.getpid(), signal.SIGKILL)
    put(copy, place)
shard.put = dying
shards.predict_shards({str(model)!r}, {str(shards)!r}, {str(out)!r}, device="cpu")
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == -signal.SIGKILL
    assert sorted(path.name for path in out.glob("*.parquet")) == ["0.tar.parquet", "1.tar.parquet"]
    put(out / ".1.tar.parquet.0123.partial", b"half")  # As a kill while it is put leaves it.
    assigned(model, shards, out)
    assert not list(out.glob(".*.partial"))
    assigned(model, shards, tmp_path / "whole")
    assert tables(out) == tables(tmp_path / "whole")


@pytest.mark.slow
def test_processes_end_with_the_command_that_began_them(model: Path, shards: Path, tmp_path: Path) -> None:
    tar(shards / "9.tar", {f"{number}.png": encoded(IMAGES[0]) for number in range(3000)})
    command = [sys.executable, "-m", "dccm", "predict", str(model), str(shards), "-o", str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    words = [*command, "--processes", "2", "--device", "cpu"]
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not list((tmp_path / "out").glob("*.parquet")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()  # Its processes hold the pipes, so this waits until they have ended.
    assert assigned(model, shards, tmp_path / "out").images == 3039


def killed(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_memory_that_the_system_takes_is_told_with_the_shards_it_happened_at(
    model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_do", killed)
    with pytest.raises(UserError, match=r"A process was killed.* at one of the shards 0.tar, .*fewer than 2 processes"):
        assigned(model, shards, tmp_path / "out", processes=2)
    monkeypatch.undo()
    assert assigned(model, shards, tmp_path / "out").images == 39


def test_a_broken_shard_is_named_and_the_others_are_done(model: Path, shards: Path, tmp_path: Path) -> None:
    put(shards / "1.parquet", b"PAR1 cut")
    put(shards / "2.tar", (shards / "2.tar").read_bytes()[:3000])
    summary = assigned(model, shards, tmp_path / "out")
    assert [(done.shard, "cannot be read as parquet" in done.reason) for done in summary.missing] == [
        ("1.parquet", True)
    ]
    cut = {row["path"]: row["reason"] for row in rows(tmp_path / "out") if row["path"].startswith("2.tar")}
    assert "the archive is damaged behind its first" in cut["2.tar"]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["missing"] == 1
    (shards / "1.parquet").unlink()
    assert assigned(model, shards, tmp_path / "out").missing == []


def test_a_shard_that_vanishes_is_named_and_tried_again(
    model: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = fsspec.filesystem("memory")
    content = storage.cat_file("/bucket/shards/2.tar")

    def gone(*given: Any) -> Any:
        storage.rm_file("/bucket/shards/2.tar")
        return engines.done_by(*given)

    with monkeypatch.context() as patch:
        patch.setattr(module, "done_by", gone)
        (done,) = assigned(model, f"{bucket}/shards", f"{bucket}/out").missing
    assert done.reason == "Cannot fetch memory:///bucket/shards/2.tar: /bucket/shards/2.tar. Check the address."
    storage.pipe_file("/bucket/shards/2.tar", content)
    assert assigned(model, f"{bucket}/shards", f"{bucket}/out").images == 39


def test_image_files_are_done_some_at_a_time(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_module, "_FILES", 15)
    for name, content in pictures(*range(40)).items():
        put(tmp_path / "photos" / name[0] / name, content)
    assert assigned(model, tmp_path / "photos", tmp_path / "out").shards == 3
    assert len({row["path"] for row in rows(tmp_path / "out")}) == 40


def test_image_files_that_a_storage_refuses_for_a_moment_are_tried_again(
    model: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = fsspec.filesystem("memory")
    for name, content in pictures(0, 1).items():
        storage.pipe_file(f"/bucket/photos/{name}", content)
    whole = type(storage).cat_file

    def refused(self: Any, path: str) -> Any:
        if path.endswith("1.png"):
            raise PermissionError(13, "Access Denied")
        return whole(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "cat_file", refused)
        summary = assigned(model, f"{bucket}/photos", f"{bucket}/out")
    assert (summary.images, summary.skipped, summary.passing) == (1, 1, 1)
    assert "Access Denied" in rows(f"{bucket}/out")[1]["reason"]
    summary = assigned(model, f"{bucket}/photos", f"{bucket}/out")
    assert (summary.images, summary.skipped, summary.passing) == (2, 0, 0)


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        ({"output": None}, "output must be given"),
        ({"reject": 0.1}, "reject must be a threshold such as below:0.6"),
        ({"split": "train"}, "split must be left out"),
        ({"engine": "spark"}, "No engine 'spark'"),
        ({"images": "memory://nothing"}, "There are no shards at memory://nothing"),
        ({"images": "cifar10"}, "engine and processes are for images at a path"),
        ({"images": "nowhere"}, "There is no file or folder nowhere"),
        ({"output": "nonsense://out"}, "Cannot open nonsense://out: Protocol not known"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    model: Path, shards: Path, tmp_path: Path, others: dict[str, Any], sentence: str
) -> None:
    given: dict[str, Any] = {"images": shards, "output": tmp_path / "out"} | others
    with pytest.raises(UserError) as refused:
        assigned(model, **given)
    assert str(refused.value).startswith(sentence)
    assert not list(tmp_path.glob("out/*.parquet"))


@pytest.mark.parametrize(
    "manifest", ["[]", "{}", '{"format": 1, "of": []}', '{"format": "x", "of": {}}', "[" * 100_000]
)
def test_a_manifest_of_a_stranger_ends_in_one_sentence(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(UserError, match=r"manifest\.json is broken \(.*; choose another output"):
        Output(tmp_path, {"model": "a"}, "images").begin()


def test_results_of_another_model_other_settings_or_other_images_are_never_mixed(
    model: Path, shards: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assigned(model, shards, out)
    before = tree(out)
    other = cluster(IMAGES, 3, "kmeans", output=tmp_path / "other", settings={"device": "cpu"}).directory.path
    for given, named in (
        ((other, shards, {}), "model = "),
        ((model, shards, {"reject": "below:0.5"}), "reject = 'None', and now it is '0.5'"),
        ((model, f"{shards}/*.tar", {}), "images = "),
    ):
        with pytest.raises(UserError, match=f"holds results with {named}"):
            assigned(given[0], given[1], out, **given[2])
    put(tmp_path / "full" / "notes.txt", b"mine")
    with pytest.raises(UserError, match="holds other files, and nothing is overwritten"):
        assigned(model, shards, tmp_path / "full")
    with pytest.raises(UserError, match="The output must not lie among the images"):
        assigned(model, shards, shards / "out")
    assert tree(out) == before


def test_results_that_a_pattern_would_fit_are_no_images(model: Path, shards: Path) -> None:
    for _ in range(2):
        assert assigned(model, f"{shards}/*", shards / "out").shards == 4


def test_a_target_that_cannot_be_written_stops_all_with_a_sentence_that_names_the_shard(
    model: Path, shards: Path, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "file", b"")
    with pytest.raises(UserError, match="Cannot make the output folder"):
        assigned(model, shards, tmp_path / "file" / "out")
    storage = fsspec.filesystem("memory")
    whole = type(storage).put_file

    def full(self: Any, copy: str, place: str) -> None:
        if place.endswith("1.tar.parquet"):
            raise OSError(28, "No space left on device")
        whole(self, copy, place)

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "put_file", full)
        with pytest.raises(UserError, match=r"The result of the shard 1.tar could not be written on .*No space left"):
            assigned(model, f"{bucket}/shards", f"{bucket}/out")
    assert sorted(name for name in storage.ls("/bucket/out", detail=False) if name.endswith(".parquet")) == [
        "/bucket/out/0.tar.parquet"
    ]
    assert assigned(model, f"{bucket}/shards", f"{bucket}/out").images == 39


def test_large_shards_do_not_pile_up_in_memory(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dccm.fleet import shard

    monkeypatch.setattr(shard, "_MOST", 64)
    seen: list[int] = []
    add = Table.add

    def noted(self: Table, paths: list[str], *rest: Any) -> None:
        seen.append(len(paths))
        add(self, paths, *rest)

    monkeypatch.setattr(Table, "add", noted)
    tar(tmp_path / "a.tar", {f"{number}.png": encoded(IMAGES[number % 40]) for number in range(300)})
    assert assigned(model, tmp_path / "a.tar", tmp_path / "out").images == 300
    assert sum(seen) == 300
    assert max(seen) < 64 + 16


def test_corrections_of_the_run_are_followed(model: Path, shards: Path, tmp_path: Path) -> None:
    corrected = Path(shutil.copytree(model, tmp_path / "corrected"))
    directory = RunDirectory(corrected)
    log = open_log(directory, directory.read_assignments(), 4)
    log.write([("ann", Change(kind="merge", clusters=(0, 1, 2), cluster=2))])
    usual = predict(corrected, str(shards), device="cpu", cache=tmp_path / "cache")
    assigned(corrected, shards, tmp_path / "out")
    found = [row["cluster"] for row in rows(tmp_path / "out") if row["reason"] is None]
    assert found == usual.assignments.clusters.tolist()
    assert set(found) == {2, 3}


def test_confidences_are_those_of_the_usual_command(model: Path, shards: Path, tmp_path: Path) -> None:
    usual = predict(model, str(shards), device="cpu", cache=tmp_path / "cache")
    assigned(model, shards, tmp_path / "out")
    confidences = [row["confidence"] for row in rows(tmp_path / "out") if row["reason"] is None]
    assert np.allclose(confidences, usual.assignments.confidences, atol=1e-6, equal_nan=True)


def test_a_full_disk_and_a_disk_that_may_not_be_written_to_leave_nothing_half_written(
    model: Path, shards: Path, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 20) as disk:
        with pytest.raises(
            UserError, match=r"The result of the shard .\.tar could not be written on .*No room on disk"
        ):
            assigned(model, shards, disk / "out")
        whole = {path.name for path in (disk / "out").iterdir() if path.name != "run.lock"}
        assert whole < {"manifest.json", "shards.csv", *(f"{number}.tar.parquet" for number in range(4))}
        remounted(disk, "ro")
        with pytest.raises(UserError, match="Read-only file system"):
            assigned(model, shards, disk / "out")
        remounted(disk, "rw,size=4000k")
        assert assigned(model, shards, disk / "out").images == 39
        assert len({row["path"] for row in rows(disk / "out")}) == 40


def test_the_command_line_says_what_was_done_and_names_what_was_not(
    model: Path,
    shards: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["predict", str(model), str(shards), "-o", str(tmp_path / "out"), "--processes", "1", "--device", "cpu"]
    assert dccm(*words, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    assert said.out == f"39 images in 4 of 4 shards, 1 skipped; see {tmp_path / 'out'}.\n"
    assert re.search(r"4/4 shards  [\d,]+ images/s  0:00 left  100%", said.err)
    put(shards / "5.zip", b"PK half")
    assert dccm(*words, "--json", "--quiet", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["images"], document["shards"], document["missing"][0]["shard"]) == (39, 5, "5.zip")
    assert re.match(r"dccm: 1 of 5 shards could not be read; the first, 5.zip on \S+: ", said.err)
    assert dccm(*words[:3], "-o", "ftp://me:secret@host/out", monkeypatch=monkeypatch) == 2
    assert "An address may hold no password" in capsys.readouterr().err
