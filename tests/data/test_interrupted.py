"""Preparations that stop in the middle, are damaged, or meet each other."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import IO, Any

import numpy as np
import pytest

from dccm.data import decoding as module
from dccm.data.decode import Preparation, decode
from dccm.data.images import ImageSet
from dccm.data.prepare import prepare
from dccm.data.prepared import read_manifest
from dccm.data.sources.folder import Folder
from dccm.errors import UserError
from tests.data.pictures import contents, encoded, noise, photos, png, prepared_folder, put

WANTED = Preparation((8, 8))
COUNT = 30
DEEP = b"[" * 100_000
GROUP, COMMIT = 4, 2
CHILD = f"""
import os, signal, sys
from pathlib import Path
from dccm.data import cache, decoding, prepare
from dccm.data.decode import Preparation
from dccm.data.sources.folder import Folder

decoding._GROUP, decoding._COMMIT = {GROUP}, {COMMIT}
folder, where, moment = sys.argv[1:]

def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

def on_progress(done: int, total: int) -> None:
    if moment == "on_progress" and done >= 12:
        die()
    if moment == "wait" and done >= 12:
        print("halfway", flush=True)
        input()

syncs = []
def fsync(number: int, sync=os.fsync) -> None:
    syncs.append(sync(number))
    if moment == "sync" and len(syncs) == 2:
        die()

def replace(path: Path, target: Path, replace=Path.replace) -> None:
    if moment == "before " + target.name and (target.exists() or target.name == "manifest.json"):
        die()
    replace(path, target)
    if moment == "after " + target.name:
        die()

os.fsync, Path.replace = fsync, replace
prepare.prepare(Folder(Path(folder)), Preparation((8, 8)), cache=Path(where), workers=2, on_progress=on_progress)
"""


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GROUP", GROUP)
    monkeypatch.setattr(module, "_COMMIT", COMMIT)


@pytest.fixture(params=["colour", "grey"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Many small pictures, some of them broken."""
    for number in range(COUNT):
        content = encoded(noise(number, 8)[..., 0]) if request.param == "grey" else png(number, 8)
        put(tmp_path / "photos" / f"{number:02}.png", b"nothing" if number % 7 == 5 else content)
    if sys.platform != "win32":
        (tmp_path / "photos" / "gone.png").symlink_to("nowhere")  # Left out when the folder is listed.
    return tmp_path / "photos"


@pytest.fixture
def whole(folder: Path, tmp_path: Path) -> dict[str, bytes | str]:
    """What an unbroken preparation leaves."""
    ready(folder, tmp_path / "whole")
    return contents(tmp_path / "whole")


def ready(folder: Path, cache: Path, **options: Any) -> ImageSet:
    return prepare(Folder(folder), WANTED, cache=cache, workers=2, **options)


def stop_at(number: int) -> Callable[[int, int], None]:
    def on_progress(done: int, total: int) -> None:
        if done >= number:
            raise KeyboardInterrupt

    return on_progress


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []

    def counted(item: Any, wanted: Preparation) -> Any:
        calls.append(item)
        return decode(item, wanted)

    monkeypatch.setattr(module, "decode", counted)
    return calls


@pytest.mark.parametrize(("stop", "done"), [(4, 0), (8, 8), (12, 8), (24, 24), (28, 24), (30, 30)])
def test_an_interrupted_preparation_goes_on_where_it_stopped(
    folder: Path, tmp_path: Path, whole: object, stop: int, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        ready(folder, tmp_path / "cache", on_progress=stop_at(stop))
    assert read_manifest(prepared_folder(tmp_path / "cache")) is None
    decoded = count_decoded(monkeypatch)
    ready(folder, tmp_path / "cache")
    assert len(decoded) == COUNT - done
    assert contents(tmp_path / "cache") == whole


def test_a_preparation_may_be_interrupted_again_and_again(folder: Path, tmp_path: Path, whole: object) -> None:
    for number in range(4, COUNT, 4):
        with pytest.raises(KeyboardInterrupt):
            ready(folder, tmp_path / "cache", on_progress=stop_at(number))
    ready(folder, tmp_path / "cache")
    assert contents(tmp_path / "cache") == whole


def test_a_folder_that_changes_in_between_begins_anew(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        ready(folder, tmp_path / "cache", on_progress=stop_at(20))
    put(folder / "00.png", png(99, 8))
    assert (ready(folder, tmp_path / "cache").images[0] == noise(99, 8)).all()


def child(folder: Path, cache: Path, moment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", CHILD, str(folder), str(cache), moment]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


MOMENTS = [
    "on_progress",
    "sync",
    "before progress.json",
    "after progress.json",
    "before manifest.json",
    "after manifest.json",
]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
@pytest.mark.parametrize("folder", ["grey"], indirect=True)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_preparation_goes_on_and_ends_the_same_to_the_byte(
    folder: Path, tmp_path: Path, whole: dict[str, bytes | str], moment: str
) -> None:
    with child(folder, tmp_path / "cache", moment) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, said
    ready(folder, tmp_path / "cache")
    left = {name: content for name, content in contents(tmp_path / "cache").items() if "progress.json" not in name}
    assert left == whole


@pytest.mark.parametrize("folder", ["colour"], indirect=True)
def test_two_processes_at_once_prepare_once(
    folder: Path, tmp_path: Path, whole: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    decoded = count_decoded(monkeypatch)
    with child(folder, tmp_path / "cache", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "halfway\n"
        second = Thread(target=ready, args=(folder, tmp_path / "cache"), kwargs={"say": said.append})
        second.start()
        until = time.monotonic() + 30
        while not said and time.monotonic() < until:
            time.sleep(0.01)
        assert second.is_alive()
        process.communicate("go on\n" * COUNT, timeout=120)
        second.join(60)
    assert process.returncode == 0
    assert not second.is_alive()
    assert said == ["Another process prepares these images; waiting for it."]
    assert decoded == []
    assert contents(tmp_path / "cache") == whole


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"fingerprint": 3}', b'{"done": 8}', b"\xff\xfe\0", DEEP]
)
def test_damaged_progress_begins_anew(folder: Path, tmp_path: Path, whole: object, content: bytes) -> None:
    with pytest.raises(KeyboardInterrupt):
        ready(folder, tmp_path / "cache", on_progress=stop_at(20))
    put(prepared_folder(tmp_path / "cache") / "progress.json", content)
    ready(folder, tmp_path / "cache")
    assert contents(tmp_path / "cache") == whole


FILES = ["images.npy", "kept.i64", "hashes.u64", "manifest.csv"]


@pytest.mark.parametrize("size", [0, 20, None])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_lost_its_end_or_is_gone_begins_anew(
    folder: Path, tmp_path: Path, whole: object, name: str, size: int | None
) -> None:
    with pytest.raises(KeyboardInterrupt):
        ready(folder, tmp_path / "cache", on_progress=stop_at(20))
    shorten(prepared_folder(tmp_path / "cache") / name, size)
    ready(folder, tmp_path / "cache")
    assert contents(tmp_path / "cache") == whole


@pytest.mark.parametrize("name", FILES)
def test_bytes_that_never_reached_the_disk_are_noticed(folder: Path, tmp_path: Path, whole: object, name: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        ready(folder, tmp_path / "cache", on_progress=stop_at(20))
    path = prepared_folder(tmp_path / "cache") / name
    content = path.read_bytes()
    put(path, content[:140] + bytes(8) + content[148:] if len(content) > 148 else bytes(len(content)))
    ready(folder, tmp_path / "cache")
    assert contents(tmp_path / "cache") == whole


def shorten(path: Path, size: int | None) -> None:
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)


@pytest.mark.parametrize("size", [0, 20, 200, None])
@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_a_finished_preparation_that_is_damaged_is_made_anew(
    folder: Path, tmp_path: Path, whole: object, name: str, size: int | None
) -> None:
    ready(folder, tmp_path / "cache")
    shorten(prepared_folder(tmp_path / "cache") / name, size)
    assert len(ready(folder, tmp_path / "cache").images) == 26
    assert contents(tmp_path / "cache") == whole


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"format": 99, "fingerprint": ""}', b'{"format": 1}', DEEP])
def test_a_manifest_of_another_kind_is_not_believed(
    folder: Path, tmp_path: Path, whole: object, content: bytes
) -> None:
    ready(folder, tmp_path / "cache")
    put(prepared_folder(tmp_path / "cache") / "manifest.json", content)
    ready(folder, tmp_path / "cache")
    assert contents(tmp_path / "cache") == whole


class Full:
    """A file on a disk that is full after some bytes."""

    def __init__(self, file: IO[bytes], room: int) -> None:
        self._file, self._room = file, room

    def write(self, content: bytes) -> int:
        self._room -= len(content)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(content)

    def __enter__(self) -> "Full":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._room < 0:  # What is left in the buffer does not fit either.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("name", FILES)
def test_a_full_disk_ends_in_a_sentence_and_what_is_prepared_is_kept(
    folder: Path, tmp_path: Path, whole: dict[str, bytes | str], name: str
) -> None:
    opened = Path.open
    files: list[IO[bytes]] = []
    size = next(len(content) for path, content in whole.items() if path.endswith(name))
    room = COUNT // 2 * 8 * 8 * 3 if name == "images.npy" else size // 2  # Grey images are colour ones up to the end.

    def full(path: Path, *options: Any, **more: Any) -> Any:
        file = opened(path, *options, **more)
        files.append(file)
        return Full(file, room) if path.name == name else file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(
            UserError, match=r"No room on disk to keep prepared images in .*; what is prepared so far is kept"
        ):
            ready(folder, tmp_path / "cache")
    assert all(file.closed for file in files)
    with pytest.MonkeyPatch.context() as patch:
        decoded = count_decoded(patch)
        ready(folder, tmp_path / "cache")
    assert 0 < len(decoded) < COUNT
    assert contents(tmp_path / "cache") == whole


def test_a_disk_that_is_full_when_it_is_flushed_ends_in_a_sentence(
    folder: Path, tmp_path: Path, whole: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match="No room on disk"):
            ready(folder, tmp_path / "cache")
    assert np.array_equal(ready(folder, tmp_path / "cache").images.shape[:3], (26, 8, 8))
    assert contents(tmp_path / "cache") == whole


def flip(path: Path, place: int) -> None:
    """Change one byte, as a failing disk does."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("name", ["images.npy", "kept.i64", "hashes.u64", "manifest.csv"])
def test_one_changed_byte_of_a_finished_preparation_is_noticed(
    folder: Path, tmp_path: Path, whole: object, name: str
) -> None:
    ready(folder, tmp_path / "cache")
    flip(prepared_folder(tmp_path / "cache") / name, -3)
    said: list[str] = []
    ready(folder, tmp_path / "cache", say=said.append)
    assert said == ["The images have changed since they were prepared; they are prepared anew."]
    assert contents(tmp_path / "cache") == whole


def test_another_shape_or_type_in_the_head_of_the_pixels_is_noticed(
    folder: Path, tmp_path: Path, whole: object
) -> None:
    ready(folder, tmp_path / "cache")
    path = prepared_folder(tmp_path / "cache") / "images.npy"
    pixels = np.load(path)
    for changed in (pixels.reshape(len(pixels), 4, 16, -1), pixels.view(np.int8)):
        np.save(path, changed)
        ready(folder, tmp_path / "cache")
        assert contents(tmp_path / "cache") == whole


def test_checksums_are_compared_once_for_each_state_of_the_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(folder, tmp_path / "cache")
    monkeypatch.setattr("dccm.data.checked.checksum", lambda *_: pytest.fail("all was read again"))
    ready(folder, tmp_path / "cache")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_image_is_tried_again_when_it_is_allowed(tmp_path: Path) -> None:
    source = photos(tmp_path / "images", 4)
    (source / "02.png").chmod(0)
    assert [skipped.reason for skipped in ready(source, tmp_path / "cache").skipped] == ["Permission denied"]
    (source / "02.png").chmod(0o600)
    assert len(ready(source, tmp_path / "cache").images) == 4


class Refusing(Folder):
    """Cannot read one image as long as the cause is there."""

    cause: OSError | MemoryError | None = None

    def read(self, index: int) -> Any:
        if index == 2 and self.cause is not None:
            raise self.cause
        return super().read(index)


def test_what_the_moment_did_is_tried_again(tmp_path: Path) -> None:
    source = Refusing(photos(tmp_path / "images", 4))
    source.cause = PermissionError(errno.EACCES, "Permission denied")
    for _ in range(2):
        image_set = prepare(source, WANTED, cache=tmp_path / "cache")
        assert [tuple(skipped) for skipped in image_set.skipped] == [("02.png", "Permission denied")]
    source.cause = None
    image_set = prepare(source, WANTED, cache=tmp_path / "cache")
    assert len(image_set.images) == 4
    assert not image_set.skipped


@pytest.mark.parametrize(
    ("cause", "what"),
    [
        (OSError(errno.EMFILE, "Too many open files"), r"open files of this process \(ulimit -n\)"),
        (OSError(errno.ENFILE, "Too many open files in system"), "open files of this machine"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory"),
        (MemoryError(), "memory"),
    ],
)
def test_no_image_is_skipped_because_means_are_used_up(cause: OSError | MemoryError, what: str, tmp_path: Path) -> None:
    source = Refusing(photos(tmp_path / "images", 4))
    source.cause = cause
    with pytest.raises(UserError, match=f"^Out of {what} while images were read; what is prepared so far is kept"):
        prepare(source, WANTED, cache=tmp_path / "cache")
    source.cause = None
    assert len(prepare(source, WANTED, cache=tmp_path / "cache").images) == 4
