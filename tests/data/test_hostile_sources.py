"""Files that lie, have no end or are damaged, as sources of images: one sentence, or a reason in the list."""

import bz2
import os
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dccm.data.images import ImageSet, as_bytes
from dccm.data.names import LONGEST
from dccm.data.read import read_images
from dccm.data.sources import archive, array_files
from dccm.errors import UserError
from tests.data.pictures import encoded, noise, photos, png, put, within
from tests.data.sources.archives import tar, zipped

KINDS = (".zip", ".tar", ".tar.gz", ".npy", ".npz", ".txt", ".csv", ".parquet")


def read(images: Any, tmp_path: Path) -> ImageSet:
    return read_images(images, cache=tmp_path / "cache")


def refusal(path: Path) -> str:
    """The sentence on which reading ends, in good time."""

    def attempt() -> str:
        with pytest.raises(UserError) as refused:
            read_images(path)
        return str(refused.value)

    return within(20, attempt)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("kind", KINDS)
def test_pipes_and_devices_are_no_sources_whatever_they_are_called(kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"pipe{kind}")
    (tmp_path / f"endless{kind}").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        path = tmp_path / f"{name}{kind}"
        assert refusal(path).startswith(f"{path} is no regular file but a pipe or a device")


def test_a_list_of_a_million_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("path," + ",".join(map(str, range(10**6))) + "\n" + "a.png\n" * 5)
    assert "names 1,000,001 columns, more than 1,000); write a first line 'path'" in refusal(path)


@pytest.mark.parametrize("make", [zipped, tar])
def test_a_member_with_an_absurd_name_is_skipped_when_listing(make: Any, tmp_path: Path) -> None:
    suffix = ".zip" if make is zipped else ".tar"
    names = ["x" * (LONGEST + 1) + ".png", "x" * (LONGEST - 4) + ".png", "good.png"]
    path = make(tmp_path / f"a{suffix}", {name: png(number) for number, name in enumerate(names)})
    image_set = read(path, tmp_path)
    assert list(image_set.names) == names[1:]
    assert image_set.skipped == [(f"{'x' * 100}... (4,101 characters)", "its name is too long")]


def test_an_absurd_name_in_a_list_or_a_table_goes_no_further(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"bytes": png(number), "path": "x" * (LONGEST + number)} for number in range(2)]
    parquet.write_table(pyarrow.table({"image": rows}), tmp_path / "a.parquet")
    assert list(read(tmp_path / "a.parquet", tmp_path).names) == ["a/0", "a/1"]
    image_set = read([photos(tmp_path / "photos", 1) / "00.png", "x" * 10**6], tmp_path)
    assert image_set.skipped == [(f"{'x' * 100}... (1,000,000 characters)", "File name too long")]


@pytest.mark.parametrize("place", [0.5, 0.8, -6, -2])
def test_a_flipped_byte_in_a_compressed_archive_is_found(place: float, tmp_path: Path) -> None:
    files = {f"{number}.bmp": encoded(noise(number), "BMP") for number in range(12)}
    path = tar(tmp_path / "a.tar.gz", files)
    assert read(path, tmp_path).skipped == []
    content = bytearray(path.read_bytes())
    content[int(place if place < 0 else place * len(content))] ^= 1
    put(path, content)
    noted = [reason for name, reason in read(path, tmp_path).skipped if name == "a.tar.gz"]
    assert len(noted) == 1
    assert noted[0].startswith("the archive is damaged")


def headed(shape: str, descr: str = "'|u1'") -> bytes:
    """An .npy file whose head says so."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(500)


LIES = {
    "27 TiB": headed("(30000000000, 8, 8, 16)"),
    "nested": headed("(" * 500),
    "negative": headed("(-3, 8, 8)"),
    "truth": headed("(True, 8, 8)"),
    "beyond numbers": headed("(99999999999999999999999, 8, 8)"),
    "nested type": headed("(3, 8, 8)", "[" * 300),
    "objects": headed("(3, 8, 8)", "'|O'"),
    "no head": b"\x93NUMPY\x01\x00\xff\xff",
}


@pytest.mark.parametrize("kind", ["npy", "npz"])
@pytest.mark.parametrize("lie", LIES)
def test_heads_of_arrays_that_lie_end_in_a_sentence(kind: str, lie: str, tmp_path: Path) -> None:
    path = put(tmp_path / "images.npy", LIES[lie])
    if kind == "npz":
        path = tmp_path / "images.npz"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("images.npy", LIES[lie])
    assert refusal(path).startswith(f"{path} is broken (")


def test_a_small_file_does_not_become_a_huge_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "MOST_BYTES", 10**6)
    np.savez_compressed(tmp_path / "bomb.npz", images=np.zeros((20, 1024, 1024), np.uint8))
    assert "its arrays are larger than" in refusal(tmp_path / "bomb.npz")


@pytest.mark.parametrize("shape", [(3, 8, 8, 0), (3, 0, 8, 3), (3, 8, 0)])
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_images_without_pixels_or_channels_are_refused(shape: tuple[int, ...], kind: type) -> None:
    with pytest.raises(UserError, match=r"images must have pixels and channels, got the shape \(3, "):
        as_bytes(np.zeros(shape, kind))


@pytest.mark.parametrize(
    ("images", "advice"),
    [
        (np.full((2, 8, 8), 256, np.uint16), "They go from 256 to 256; scale them, for example with images / 65535."),
        (np.full((2, 8, 8), 255, np.uint16), "Convert them with images.astype('uint8')."),
        (np.full((2, 8, 8), 300, np.int64), "They go from 300 to 300; scale them, for example with images / 1."),
        (np.arange(128).reshape(2, 8, 8) - 64, "for example with (images + 64) / 127."),
        (np.zeros((2, 8, 8), complex), "Give the values of pixels as numbers."),
    ],
)
def test_advice_for_other_numbers_does_not_wrap_them(images: np.ndarray, advice: str) -> None:
    with pytest.raises(UserError) as refused:
        as_bytes(images)
    assert advice in str(refused.value)


def test_one_image_of_pillow_is_to_be_put_into_a_list(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"images must be several, got one image of Pillow. Give a list: \[image\]."):
        read(Image.fromarray(noise()), tmp_path)
    assert read([Image.fromarray(noise())], tmp_path).images.shape == (1, 32, 32, 3)


def test_a_tar_that_grows_beyond_reason_behind_its_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 10**6)
    plain = tar(tmp_path / "a.tar", {"a.png": png()}).read_bytes()
    path = put(tmp_path / "bomb.tar.bz2", bz2.compress(plain + bytes(20 * 1024 * 1024)))
    assert "unpacks to more than 200 times its size" in refusal(path)
