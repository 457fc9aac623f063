import json
import os
import shutil
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest
from PIL import Image

from dccm.data import decoding as module
from dccm.data.decode import Preparation, decode
from dccm.data.duplicates import content_hash, find_duplicates
from dccm.data.images import ImageSet
from dccm.data.prepare import prepare
from dccm.data.read import open_source
from dccm.data.sources.folder import Folder
from dccm.errors import UserError
from tests.data.pictures import contents, encoded, noise, photos, png, prepared_folder, put, rows, tree
from tests.data.sources.archives import described, tar, zipped

WANTED = Preparation((24, 24))
Count = Callable[[], int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five pictures, one of them broken, and what is no picture."""
    photos(tmp_path / "photos", 5)
    put(tmp_path / "photos" / "02.png", b"nothing")
    put(tmp_path / "photos" / "notes.txt", b"text")
    return tmp_path / "photos"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How many images have been decoded since this was asked last."""
    calls: list[object] = []

    def counted(item: Any, wanted: Preparation) -> Any:
        calls.append(item)
        return decode(item, wanted)

    def count() -> int:
        number = len(calls)
        calls.clear()
        return number

    monkeypatch.setattr(module, "decode", counted)
    return count


def ready(folder: Path, cache: Path, wanted: Preparation = WANTED, **options: Any) -> ImageSet:
    return prepare(open_source(folder), wanted, cache=cache, **options)


def test_all_that_can_be_read_is_there_with_its_name(folder: Path, cache: Path) -> None:
    image_set = ready(folder, cache)
    assert image_set.names == ["00.png", "01.png", "03.png", "04.png"]
    assert np.array_equal(image_set.images, [noise(number) for number in (0, 1, 3, 4)])
    assert image_set.images.dtype == np.uint8
    assert isinstance(image_set.images, np.memmap)
    assert image_set.skipped == [("02.png", "not an image of a known format")]
    assert image_set.duplicates == []


def test_the_manifest_has_one_row_for_each_image_of_the_source(folder: Path, cache: Path) -> None:
    if sys.platform != "win32":
        (folder / "gone.png").symlink_to("nowhere")
    ready(folder, cache)
    written = rows(cache)
    assert list(written[0]) == ["path", "status", "reason", "hash"]
    by_path = {row.pop("path"): row for row in written}
    assert len(by_path) == len(written)
    if sys.platform != "win32":
        reason = "cannot be opened: No such file or directory"
        assert by_path.pop("gone.png") == {"status": "skipped", "reason": reason, "hash": ""}
    reason = "not an image of a known format"
    assert by_path.pop("02.png") == {"status": "skipped", "reason": reason, "hash": ""}
    assert by_path == {
        f"{number:02}.png": {"status": "ok", "reason": "", "hash": content_hash(noise(number)).hex()}
        for number in (0, 1, 3, 4)
    }


def test_the_manifest_tells_the_source_and_the_preparation(folder: Path, cache: Path) -> None:
    ready(folder, cache)
    manifest = json.loads((prepared_folder(cache) / "manifest.json").read_text())
    assert manifest["kind"] == "folder"
    assert manifest["place"] == str(folder.resolve())
    assert manifest["preparation"] == {"size": [24, 24], "fit": "crop", "channels": None}
    assert (manifest["images"], manifest["skipped"]) == (4, 1)


@pytest.mark.parametrize("grey", [False, True])
def test_the_manifest_holds_a_checksum_of_all_pixels(tmp_path: Path, cache: Path, grey: bool) -> None:
    for number in range(20):
        put(tmp_path / "photos" / f"{number:02}.png", encoded(noise(number)[..., 0] if grey else noise(number)))
    image_set = ready(tmp_path / "photos", cache)
    manifest = json.loads((prepared_folder(cache) / "manifest.json").read_text())
    assert manifest["checksums"]["images.npy"] == f"{crc32(image_set.images.tobytes()):08x}"


def test_a_second_run_decodes_nothing_and_gives_the_same(folder: Path, cache: Path, decoded: Count) -> None:
    first = ready(folder, cache)
    assert decoded() == 5
    before = tree(cache)
    second = ready(folder, cache)
    assert decoded() == 0
    assert np.array_equal(first.images, second.images)
    assert (second.names, second.skipped) == (first.names, first.skipped)
    assert tree(cache) == before


@pytest.mark.parametrize("change", ["content", "new", "gone", "mended"])
def test_a_changed_folder_is_prepared_anew_and_the_user_is_told(folder: Path, cache: Path, change: str) -> None:
    ready(folder, cache)
    expected = [0, 1, 3, 4]
    match change:
        case "content":
            os.utime(put(folder / "01.png", png(9)), ns=(1, 1))
            expected = [0, 9, 3, 4]
        case "new":
            put(folder / "05.png", png(5))
            expected = [0, 1, 3, 4, 5]
        case "gone":
            (folder / "01.png").unlink()
            expected = [0, 3, 4]
        case _:
            put(folder / "02.png", png(2))
            expected = [0, 1, 2, 3, 4]
    said: list[str] = []
    image_set = ready(folder, cache, say=said.append)
    assert said == ["The images have changed since they were prepared; they are prepared anew."]
    assert np.array_equal(image_set.images, [noise(number) for number in expected])


def test_images_in_use_stay_readable_when_they_are_prepared_anew(folder: Path, cache: Path) -> None:
    first = ready(folder, cache)
    for number in range(5, 9):
        put(folder / f"{number:02}.png", png(number))
    (folder / "00.png").unlink()
    assert len(ready(folder, cache).images) == 7
    # A file that became shorter under its map would end the process here.
    assert np.array_equal(first.images, [noise(number) for number in (0, 1, 3, 4)])


def grey(number: int) -> bytes:
    return encoded(noise(number)[..., 0])


def test_images_are_grey_only_if_every_one_is(tmp_path: Path, cache: Path) -> None:
    put(tmp_path / "photos" / "a.png", grey(0))
    put(tmp_path / "photos" / "b.png", encoded(np.repeat(noise(1)[..., :1], 3, axis=2)))
    put(tmp_path / "photos" / "broken.png", b"nothing")
    image_set = ready(tmp_path / "photos", cache)
    assert np.array_equal(image_set.images, [noise(0)[..., :1], noise(1)[..., :1]])
    put(tmp_path / "photos" / "c.png", png(2))
    image_set = ready(tmp_path / "photos", cache)
    assert image_set.images.shape == (3, 24, 24, 3)
    assert np.array_equal(image_set.images[0], np.repeat(noise(0)[..., :1], 3, axis=2))


def test_grey_and_colour_can_be_chosen(tmp_path: Path, cache: Path) -> None:
    put(tmp_path / "photos" / "a.png", grey(0))
    put(tmp_path / "photos" / "b.png", png(1))
    assert ready(tmp_path / "photos", cache, Preparation((24, 24), channels=1)).images.shape == (2, 24, 24, 1)
    (tmp_path / "photos" / "b.png").unlink()
    assert ready(tmp_path / "photos", cache, Preparation((24, 24), channels=3)).images.shape == (1, 24, 24, 3)


def test_each_way_of_preparing_has_its_own_folder(folder: Path, cache: Path, decoded: Count) -> None:
    ways = [WANTED, Preparation((16, 16)), Preparation((24, 24), "pad"), Preparation((24, 24), channels=1)]
    shapes = [ready(folder, cache, way).images.shape for way in ways]
    assert shapes == [(4, 24, 24, 3), (4, 16, 16, 3), (4, 24, 24, 3), (4, 24, 24, 1)]
    assert len(list((cache / "images").iterdir())) == 4
    decoded()
    for way in ways:
        ready(folder, cache, way)
    assert decoded() == 0


def test_each_source_has_its_own_folder_whatever_it_is_called(tmp_path: Path, cache: Path) -> None:
    photos(tmp_path / "one" / "photos", 1)
    zipped(tmp_path / "photos.zip", {"00.png": png(1)})
    assert np.array_equal(ready(tmp_path / "one" / "photos", cache).images, [noise(0)])
    assert np.array_equal(ready(tmp_path / "photos.zip", cache).images, [noise(1)])
    assert len(list((cache / "images").iterdir())) == 2


def test_labels_stay_with_their_images(tmp_path: Path, cache: Path) -> None:
    for name, content in (("b/1.png", b"nothing"), ("a/1.png", png(0)), ("b/2.png", png(1)), ("c/1.png", png(2))):
        put(tmp_path / "photos" / name, content)
    for _ in range(2):  # From the source, then from the cache.
        image_set = prepare(open_source(tmp_path / "photos", class_folders=True), WANTED, cache=cache)
        assert image_set.labels is not None
        assert image_set.labels.tolist() == ["a", "b", "c"]


def test_the_number_of_threads_changes_nothing(tmp_path: Path) -> None:
    photos(tmp_path / "photos", 70, side=8)
    put(tmp_path / "photos" / "33.png", b"nothing")
    for workers in (1, 2, 7):
        ready(tmp_path / "photos", tmp_path / f"cache-{workers}", Preparation((8, 8)), workers=workers)
    assert contents(tmp_path / "cache-1") == contents(tmp_path / "cache-2") == contents(tmp_path / "cache-7")


def test_large_images_do_not_pile_up_in_memory(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GROUP_BYTES", 1_000_000)
    members = {f"{number}.png": bytes(2_000_000) for number in range(60)}
    path = zipped(tmp_path / "a.zip", members | {"sound.png": png()})
    tracemalloc.start()
    try:
        assert len(ready(path, cache, workers=2).skipped) == 60
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_progress_is_reported_up_to_the_end(tmp_path: Path, cache: Path) -> None:
    photos(tmp_path / "photos", 40, side=8)
    reports: list[tuple[int, int]] = []
    ready(tmp_path / "photos", cache, on_progress=lambda *numbers: reports.append(numbers))
    assert reports == [(16, 40), (32, 40), (40, 40)]


def test_duplicates_are_found_among_images_and_not_among_skipped_files(folder: Path, cache: Path) -> None:
    put(folder / "copy.png", png(3))
    put(folder / "nothing.png", b"nothing")
    put(folder / "turned.png", encoded(Image.fromarray(noise(3)).transpose(Image.Transpose.ROTATE_90)))
    assert ready(folder, cache).duplicates == [("copy.png", "03.png")]
    assert ready(folder, cache).duplicates == [("copy.png", "03.png")]


def test_duplicates_are_named_with_the_first_of_their_kind() -> None:
    hashes = np.array([5, 2, 5, 7, 2, 5], dtype=np.uint64)
    assert find_duplicates(hashes, list("abcdef")) == [("c", "a"), ("e", "b"), ("f", "a")]
    assert find_duplicates(hashes[:2], list("ab")) == []
    assert find_duplicates(hashes[:0], []) == []


def test_a_source_of_broken_images_is_refused_each_time(tmp_path: Path, cache: Path) -> None:
    for name in ("a.png", "b.png"):
        put(tmp_path / "photos" / name, b"nothing")
    for _ in range(2):
        with pytest.raises(
            UserError, match=r"The folder has 2 images, and none can be read; the first, a\.png: not an image of"
        ):
            ready(tmp_path / "photos", cache)


class Disk(NamedTuple):
    free: int


def test_too_little_room_is_noticed_before_anything_is_written(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(5 * 24 * 24 * 3))
    with pytest.raises(
        UserError,
        match=r"need 8\.6 kB in .*cache.*, and 8\.6 kB are free. Free some space, or choose another",
    ):
        ready(folder, cache)
    assert {path.name for path in prepared_folder(cache).iterdir()} == {"lock"}
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(5 * 24 * 24 * 3 + 1))
    assert len(ready(folder, cache).images) == 4


@pytest.mark.parametrize("name", ["cache", "cache/below"])
def test_a_cache_that_cannot_be_a_folder_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    put(tmp_path / "cache", b"a file")
    with pytest.raises(UserError, match=r"Cannot keep prepared images in .*: .* Choose another cache folder"):
        ready(folder, tmp_path / name)


@pytest.mark.parametrize("suffix", [".zip", ".tar"])
def test_nothing_is_written_outside_the_cache(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "outer" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    names = ["../out.png", "../../out.png", str(tmp_path / "absolute.png"), "sub/in.png", "link.png", "link.png/in.png"]
    members = {name: png(number) for number, name in enumerate(names)}
    if suffix == ".zip":
        path = zipped(work / "a.zip", members)
    else:
        links = [
            described("link.png", 0, tarfile.SYMTYPE, str(tmp_path)),
            described("hard.png", 0, tarfile.LNKTYPE, "/"),
        ]
        path = tar(work / "a.tar", members, links)
    before = tree(tmp_path)
    image_set = ready(path, tmp_path / "cache")
    assert image_set.names == ["sub/in.png", "link.png", "link.png/in.png"]
    after = tree(tmp_path)
    assert {name: content for name, content in after.items() if Path(name).parts[0] != "cache"} == before
    known = {"images.npy", "kept.i64", "hashes.u64", "manifest.csv", "manifest.json", "checked.json", "lock"}
    assert {path.name for path in prepared_folder(tmp_path / "cache").iterdir()} == known


def test_the_source_is_never_written_to(folder: Path, cache: Path) -> None:
    def state() -> list[tuple[str, int, int, int]]:
        found = [(path, path.stat()) for path in sorted([folder, *folder.rglob("*")])]
        return [(str(path), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size) for path, stat in found]

    before, content = state(), tree(folder)
    ready(folder, cache)
    ready(folder, cache)
    assert state() == before
    assert tree(folder) == content


def test_the_users_cache_is_the_default(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DCCM_CACHE", str(tmp_path / "mine"))
    prepare(Folder(folder), WANTED)
    assert (prepared_folder(tmp_path / "mine") / "manifest.json").is_file()
