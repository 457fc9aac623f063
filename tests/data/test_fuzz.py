"""Whatever files are damaged, and however: no crash, no hang, and each is accounted for exactly once."""

import faulthandler
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import features

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.read import open_source
from dccm.data.sources.base import Source
from dccm.errors import UserError
from tests.data.pictures import encoded, noise, png, put, rows
from tests.data.sources.archives import tar, zipped

WANTED = Preparation((16, 16))
SUFFIXES = {"PNG": "png", "JPEG": "jpg", "GIF": "gif", "BMP": "bmp", "TIFF": "tif", "WEBP": "webp", "PPM": "ppm"} | (
    {"AVIF": "avif"} if features.check("avif") else {}
)
HEADS = (0, 4, 16, 64)
"""Bytes at the beginning that a damage leaves alone, so that some of it gets past the first look at a file."""


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A decoder that never ends cannot be stopped from Python: the whole process goes, with a trace of where it was."""
    faulthandler.dump_traceback_later(240, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def sound_files() -> list[tuple[str, bytes]]:
    """Suffix and content of small files of each format, some with several parts."""
    files = [(suffix, encoded(noise(number), kind)) for number, (kind, suffix) in enumerate(SUFFIXES.items())]
    grey, clear = noise(20)[..., 0], np.dstack([noise(21), noise(22)[..., 0]])
    files += [("png", encoded(grey)), ("png", encoded(clear)), ("webp", encoded(clear, "WEBP", lossless=True))]
    files += [("png", encoded(grey.astype(np.uint16) * 257)), ("tif", encoded(grey.astype(np.float32), "TIFF"))]
    files += [("jpg", encoded(noise(23), "JPEG", progressive=True)), ("pgm", encoded(grey, "PPM"))]
    packed = ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg")
    return files + [("tif", encoded(noise(24), "TIFF", compression=way)) for way in packed]


BEGINNINGS = [b"", *(content[:8] for _, content in sound_files())]


def damaged(content: bytes, other: bytes, chance: Random) -> bytes:
    """A file with bytes flipped, cut off, taken from another file, repeated or made extreme."""
    head = min(chance.choice(HEADS), len(content) - 1)
    place = chance.randrange(head, len(content))
    size = chance.randrange(1, 64)
    match chance.randrange(6):
        case 0:
            changed = bytearray(content)
            for _ in range(chance.randrange(1, 12)):
                changed[chance.randrange(head, len(content))] ^= 1 << chance.randrange(8)
            return bytes(changed)
        case 1:
            return content[:place]
        case 2:
            return content[:place] + other[chance.randrange(len(other)) :]
        case 3:
            return content[:place] + content[max(0, place - size) :]
        case 4:
            return content[:place] + chance.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * size + content[place + size :]
        case _:
            return content[:place] + chance.randbytes(size) + content[place + size :]


def damaged_files(count: int, seed: int) -> dict[str, bytes]:
    chance, sound = Random(seed), sound_files()
    files = {}
    for number in range(count):
        suffix, content = chance.choice(sound)
        files[f"{number:04}.{suffix}"] = damaged(content, chance.choice(sound)[1], chance)
    return files


def assert_all_accounted_for(source: Source, expected: set[str]) -> None:
    """Prepare a source, and see that each name is in the manifest once, as an image or with a reason."""
    with tempfile.TemporaryDirectory() as cache:
        image_set = prepare(source, WANTED, cache=Path(cache), workers=2)
        written = rows(Path(cache))
    assert Counter(row["path"] for row in written) == Counter(expected)
    good = [row["path"] for row in written if row["status"] == "ok"]
    assert image_set.names == good
    assert len(image_set.images) == len(good)
    bad = {row["path"]: row["reason"] for row in written if row["status"] == "skipped"}
    assert dict(image_set.skipped) == bad
    assert len(good) + len(bad) == len(expected)
    assert all(bad.values())
    assert "sound.png" in good


@pytest.mark.parametrize("seed", range(5))
def test_damaged_files_in_a_folder_are_accounted_for(seed: int, tmp_path: Path) -> None:
    files = damaged_files(200, seed) | {"sound.png": png()}
    for number, (name, content) in enumerate(files.items()):
        put(tmp_path / f"{number % 3}" / name if name != "sound.png" else tmp_path / name, content)
    source = open_source(tmp_path)
    assert_all_accounted_for(source, {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")})


@pytest.mark.parametrize("seed", range(5, 10))
def test_damaged_files_in_an_archive_are_accounted_for(seed: int, tmp_path: Path) -> None:
    files = damaged_files(200, seed) | {"sound.png": png()}
    path = zipped(tmp_path / "a.zip", files) if seed % 2 else tar(tmp_path / "a.tar.gz", files)
    assert_all_accounted_for(open_source(path), set(files))


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(st.lists(st.binary(max_size=200), min_size=4, max_size=4), st.sampled_from(BEGINNINGS))
def test_any_bytes_are_accounted_for(contents: list[bytes], head: bytes) -> None:
    files = {f"{number}.png": head + content for number, content in enumerate(contents)} | {"sound.png": png()}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            put(Path(folder) / name, content)
        assert_all_accounted_for(open_source(folder), set(files))


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz"])
def test_damaged_archives_are_refused_in_a_sentence_or_read_as_far_as_they_go(suffix: str, tmp_path: Path) -> None:
    chance = Random(suffix)
    make = zipped if suffix == ".zip" else tar
    whole = make(tmp_path / f"whole{suffix}", {f"{number}.png": png(number, 8) for number in range(12)}).read_bytes()
    read = 0
    for number in range(60):
        path = put(tmp_path / f"{number}{suffix}", damaged(whole, whole, chance))
        try:
            source = open_source(path)
            image_set = prepare(source, WANTED, cache=tmp_path / "cache", workers=1)
        except UserError as error:
            assert path.name in str(error) or "and none can be read" in str(error)  # noqa: PT017 - either way is right
            continue
        read += 1
        assert len(image_set.images) + len(image_set.skipped) == len(source) + len(source.skipped)
    assert (read > 5) is (suffix != ".tar.bz2")  # The whole archive is one block of bzip2, which is sound or not.


def test_damage_is_done_and_is_the_same_each_time() -> None:
    first, second = damaged_files(300, 0), damaged_files(300, 0)
    assert first == second
    sound = {content for _, content in sound_files()}
    assert sum(content in sound for content in first.values()) < 15
