"""Shards on a disk and in a storage: the same images in the same order, however many processes read them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.read import open_source, read_images
from dccm.data.reopen import reopened
from dccm.data.sources import shards as module
from dccm.data.sources.sharded import open_shards
from dccm.data.storage import files_at
from dccm.errors import UserError
from tests.data.pictures import contents, noise, photos, png, put
from tests.data.sources.archives import tar, zipped

WANTED = Preparation((8, 8))
NAMES = ["0.tar/0.png", "0.tar/1.png", "0.tar/2.png", "1.tar/3.png", "1.tar/4.png", "2.tar/5.png", "2.tar/6.png"]


def pictures(*numbers: int) -> dict[str, bytes]:
    return {f"{number}.png": png(number, 8) for number in numbers}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three tar archives; one of seven pictures is broken."""
    (tmp_path / "shards").mkdir()
    tar(tmp_path / "shards" / "0.tar", pictures(0, 1, 2) | {"2.png": b"nothing"})
    tar(tmp_path / "shards" / "1.tar", pictures(3, 4))
    tar(tmp_path / "shards" / "2.tar", pictures(5, 6))
    return tmp_path / "shards"


@pytest.fixture
def bucket(folder: Path) -> Iterator[str]:
    """The same in the memory of this process."""
    storage = fsspec.filesystem("memory")
    for path in folder.iterdir():
        storage.pipe_file(f"/bucket/shards/{path.name}", path.read_bytes())
    yield "memory://bucket/shards"
    storage.rm("/bucket", recursive=True)


def test_importing_the_package_imports_no_storage() -> None:
    code = (
        "import sys, dccm, dccm.cli, dccm.data.read; sys.exit(any(n in sys.modules for n in ('fsspec', 's3fs', 'ray')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("pattern", ["", "/", "/*.tar"])
def test_a_folder_and_a_storage_give_the_same_images(folder: Path, bucket: str, pattern: str) -> None:
    for place in (f"{folder}{pattern}", bucket + pattern):
        source = open_source(place)
        assert source.names == NAMES
        assert source.read(4) == png(4, 8)
        assert source.read(0) == png(0, 8)


def test_one_shard_is_called_by_what_is_in_it(folder: Path, bucket: str) -> None:
    assert open_source(f"{bucket}/1.tar").names == open_source(folder / "1.tar").names == ["3.png", "4.png"]


def test_all_kinds_of_shards_are_read_from_a_storage(tmp_path: Path, bucket: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    storage = fsspec.filesystem("memory")
    parquet.write_table(pyarrow.table({"image": [png(8, 8)], "label": [3]}), tmp_path / "b.parquet")
    for path in (zipped(tmp_path / "a.zip", pictures(7)), tmp_path / "b.parquet"):
        storage.pipe_file(f"/bucket/mixed/{path.name}", path.read_bytes())
    source = open_source("memory://bucket/mixed")
    assert source.names == ["a.zip/7.png", "b.parquet/b/0"]
    assert [source.read(0), source.read(1)] == [png(7, 8), png(8, 8)]
    assert source.labels is None  # The archive knows none.


def test_image_files_in_a_storage_are_read_in_shards(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILES", 2)
    storage = fsspec.filesystem("memory")
    for number in range(5):
        storage.pipe_file(f"/bucket/photos/{number % 2}/{number}.png", png(number, 8))
    source = open_shards("memory://bucket/photos")
    assert source.names == ["0/0.png", "0/2.png", "0/4.png", "1/1.png", "1/3.png"]
    assert [shard.name for shard in source.shards] == ["images-00000", "images-00001", "images-00002"]
    assert source.read(3) == png(1, 8)
    source.label_by_folder()
    assert source.labels is not None
    assert source.labels.tolist() == ["0", "0", "0", "1", "1"]


def test_classes_of_webdataset_are_labels(tmp_path: Path) -> None:
    members = {"a/0.cls": b"2", "a/0.png": png(0), "a/1.png": png(1), "a/1.cls": b"1\n", "a/1.json": b"{}"}
    for name in ("a.tar", "a.tar.gz"):
        labels = open_source(tar(tmp_path / name, members)).labels
        assert labels is not None
        assert labels.tolist() == [2, 1]
    assert open_source(tar(tmp_path / "b.tar", members | {"2.png": png(2)})).labels is None


def test_processes_prepare_the_same_bytes_as_one(folder: Path, tmp_path: Path) -> None:
    for processes in (1, 2):
        image_set = read_images(str(folder), image_size=8, cache=tmp_path / str(processes), processes=processes)
        assert list(image_set.names) == [name for name in NAMES if name != "0.tar/2.png"]
        assert np.array_equal(image_set.images[2], noise(3, 8))
        assert [row.path for row in image_set.skipped] == ["0.tar/2.png"]
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_processes_go_on_where_one_process_stopped_within_a_shard(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dccm.data import decoding

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    prepare(open_source(folder), WANTED, cache=tmp_path / "whole")
    monkeypatch.setattr(decoding, "_GROUP", 1)
    monkeypatch.setattr(decoding, "_COMMIT", 1)
    with pytest.raises(KeyboardInterrupt):
        prepare(open_source(folder), WANTED, cache=tmp_path / "cache", workers=1, on_progress=stop)
    done: list[int] = []
    prepare(open_source(folder), WANTED, cache=tmp_path / "cache", processes=2, on_progress=lambda n, _: done.append(n))
    assert done == [5, 7]
    assert contents(tmp_path / "cache") == contents(tmp_path / "whole")


def test_a_truncated_shard_is_named_and_the_others_are_read(folder: Path, tmp_path: Path) -> None:
    put(folder / "1.tar", (folder / "1.tar").read_bytes()[:700])
    put(folder / "2.zip", b"PK half")
    image_set = read_images(str(folder / "*"), image_size=8, cache=tmp_path / "cache")
    assert list(image_set.names) == ["0.tar/0.png", "0.tar/1.png", "2.tar/5.png", "2.tar/6.png"]
    reasons = dict(image_set.skipped)
    assert "the archive is damaged behind its first 1 image" in reasons["1.tar"]
    assert reasons["1.tar/3.png"] == "the archive ends within it"
    assert "the shard cannot be read" in reasons["2.zip"]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_shard_that_vanishes_is_read_by_the_next_run(folder: Path, tmp_path: Path, processes: int) -> None:
    source = open_source(folder)
    moved = (folder / "1.tar").rename(tmp_path / "moved.tar")
    skipped = dict(prepare(source, WANTED, cache=tmp_path / "cache", processes=processes).skipped)
    assert "its shard cannot be read any more" in skipped["1.tar/3.png"]
    moved.rename(folder / "1.tar")
    assert list(dict(prepare(open_source(folder), WANTED, cache=tmp_path / "cache").skipped)) == ["0.tar/2.png"]


def test_a_change_of_a_shard_is_noticed(folder: Path, bucket: str) -> None:
    for place in (str(folder), bucket):
        source, before = open_source(place), open_source(place).fingerprint()
        assert source.fingerprint() == before
        assert not source.changed()
    tar(folder / "1.tar", pictures(3, 4, 9))
    fsspec.filesystem("memory").pipe_file("/bucket/shards/1.tar", (folder / "1.tar").read_bytes())
    for place in (str(folder), bucket):
        assert open_source(place).names[5] == "1.tar/9.png"
    assert source.changed()


def test_a_copy_that_is_cut_is_never_read(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = fsspec.filesystem("memory")
    whole = storage.get_file

    def cut(path: str, copy: str) -> None:
        whole(path, copy)
        put(Path(copy), Path(copy).read_bytes()[:1024])

    monkeypatch.setattr(type(storage), "get_file", lambda self, path, copy: cut(path, copy))
    with pytest.raises(UserError, match=r"has 3 shards, and none .* 1,024 of its 10,240 bytes came"):
        open_source(bucket)


def test_a_source_in_a_storage_is_opened_again_by_what_a_run_noted(bucket: str) -> None:
    source = reopened(open_source(bucket).place or "")
    assert source is not None
    assert source.names == NAMES


def test_a_prefix_of_shards_and_images_is_refused(folder: Path, tmp_path: Path) -> None:
    photos(folder, 1)
    with pytest.raises(UserError, match=r"holds shards \(3 archives and parquet files\) and 1 image files"):
        open_shards(str(folder))


def test_a_folder_of_images_with_an_archive_is_still_a_folder(folder: Path, tmp_path: Path) -> None:
    photos(folder, 2)
    assert open_source(folder).names == ["00.png", "01.png"]


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("memory://nothing/here", "There are no shards at memory://nothing/here: none of 0 files"),
        ("nonsense://bucket/a.tar", "Cannot open nonsense://bucket/a.tar: Protocol not known: nonsense. Give a path"),
        ("ftp://me:secret@host/a.tar", "An address may hold no password"),
        ("nowhere/*.tar", "There are no shards at nowhere"),
    ],
)
def test_addresses_that_lead_nowhere_are_refused_in_a_sentence(place: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        open_source(place)
    assert str(refused.value).startswith(sentence)
    assert "secret" not in str(refused.value)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(UserError, match=r"s3://bucket needs a package .*s3fs.*pip install 'dccm\[cloud\]'"):
        open_source("s3://bucket")


def test_what_a_storage_refuses_is_said_in_a_sentence(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Access Denied")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "isfile", refuse)
    with pytest.raises(UserError, match="Cannot list memory://bucket/shards: Access Denied. Give credentials"):
        open_source(bucket)


def test_names_that_lead_out_of_a_prefix_are_left_out(monkeypatch: pytest.MonkeyPatch, bucket: str) -> None:
    storage = fsspec.filesystem("memory")
    known = {"type": "file", "size": 1}
    listed = {"/bucket/shards/../a.tar": known, "/bucket/shards/b.tar": known}
    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "find", lambda *_, **__: listed)
        assert [file.place for file in files_at(bucket).files] == ["memory:///bucket/shards/b.tar"]
