import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.read import open_source
from dccm.data.sources.archive import TAR_SUFFIXES, Tar, Zip
from dccm.errors import UserError
from tests.data.pictures import noise, png, put, rows, same_pixels
from tests.data.sources.archives import tar, zipped

MEMBERS = {"b.png": png(0), "sub/a.PNG": png(1), "notes.txt": b"text", "empty/": b"", "a.jpg": png(2)}
NAMES = ["b.png", "sub/a.PNG", "a.jpg"]
OUTSIDE = ["../out.png", "a/../../out.png", "/out.png", "..\\out.png", "\\out.png"]


def archive(path: Path, members: dict[str, bytes]) -> Path:
    return (zipped if path.suffix == ".zip" else tar)(path, members)


@pytest.mark.parametrize("suffix", [".zip", *TAR_SUFFIXES])
def test_images_are_read_in_place_in_the_order_of_the_archive(tmp_path: Path, suffix: str) -> None:
    path = archive(tmp_path / f"photos{suffix}", MEMBERS)
    source = open_source(path)
    assert source.names == NAMES
    assert source.skipped == []
    assert all(same_pixels(source, number, noise(number)) for number in range(3))
    assert same_pixels(source, 0, noise(0)), "going back must be possible, if slow"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("suffix", "in_order"), [(".zip", False), (".tar", False), (".tar.gz", True), (".txz", True)])
def test_compressed_tar_archives_want_to_be_read_in_order(tmp_path: Path, suffix: str, in_order: bool) -> None:
    assert open_source(archive(tmp_path / f"a{suffix}", MEMBERS)).in_order is in_order


def test_the_content_tells_how_a_tar_archive_is_compressed(tmp_path: Path) -> None:
    tar(tmp_path / "a.tar.gz", MEMBERS).rename(tmp_path / "a.tar")
    source = Tar(tmp_path / "a.tar")
    assert source.names == NAMES
    assert source.in_order


@pytest.mark.parametrize("suffix", [".zip", ".tar"])
def test_members_that_lead_out_of_the_archive_are_skipped(tmp_path: Path, suffix: str) -> None:
    source = open_source(archive(tmp_path / f"a{suffix}", dict.fromkeys(OUTSIDE, png()) | {"in.png": png(1)}))
    assert source.names == ["in.png"]
    assert [path for path, _ in source.skipped] == OUTSIDE
    assert {reason for _, reason in source.skipped} == {"its name leads out of the archive"}


@pytest.mark.parametrize("suffix", [".zip", ".tar"])
def test_members_of_one_name_are_all_read(tmp_path: Path, suffix: str) -> None:
    if suffix == ".zip":
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("a.png", png(0))
            with pytest.warns(UserWarning, match="Duplicate name"):
                archive.writestr("a.png", png(1))
    else:
        first, second = tar(tmp_path / "1.tar", {"a.png": png(0)}), tar(tmp_path / "2.tar", {"a.png": png(1)})
        put(tmp_path / "a.tar", first.read_bytes()[: 512 * (1 - -len(png(0)) // 512)] + second.read_bytes())
    source = open_source(tmp_path / f"a{suffix}")
    assert source.names == ["a.png", "a.png"]
    assert same_pixels(source, 0, noise(0))
    assert same_pixels(source, 1, noise(1))


@pytest.mark.parametrize("suffix", [".zip", ".tar"])
@pytest.mark.parametrize("name", ["line\nbreak.png", "return\r.png", 'a, "b".png', "🐟.png", "a" * 3_000 + ".png"])
def test_odd_names_stay_as_they_are(tmp_path: Path, suffix: str, name: str) -> None:
    path = archive(tmp_path / f"a{suffix}", {name: png(), "broken" + name: b"nothing"})
    image_set = prepare(open_source(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == [name]
    assert [path for path, _ in image_set.skipped] == ["broken" + name]
    assert [row["path"] for row in rows(tmp_path / "cache")] == [name, "broken" + name]


def test_names_of_a_tar_archive_may_be_any_bytes(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", {"latin \udce9.png": png()})
    assert b"latin \xe9.png" in path.read_bytes()
    assert [os.fsencode(name) for name in Tar(path).names] == [b"latin \xe9.png"]


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz"])
def test_a_broken_member_does_not_harm_the_others(tmp_path: Path, suffix: str) -> None:
    path = archive(tmp_path / f"a{suffix}", {"a.png": png(0), "b.png": b"nothing", "c.png": png(1), "d.png": b""})
    image_set = prepare(open_source(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == ["a.png", "c.png"]
    assert [path for path, _ in image_set.skipped] == ["b.png", "d.png"]


@pytest.mark.parametrize("suffix", [".zip", *TAR_SUFFIXES])
@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\5\6", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", bytes(2_000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, suffix: str, content: bytes) -> None:
    with pytest.raises(UserError, match="cannot be read as an archive .*|There is no image in .*"):
        open_source(put(tmp_path / f"a{suffix}", content))


@pytest.mark.parametrize("suffix", [".zip", ".tar"])
def test_an_archive_without_images_is_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(UserError, match="There is no image in .*a.*: none of its members has the suffix of one"):
        open_source(archive(tmp_path / f"a{suffix}", {"a.txt": b"x"}))


def test_an_archive_that_is_replaced_while_it_is_read_is_read_anew_later(tmp_path: Path) -> None:
    source = Zip(zipped(tmp_path / "a.zip", {"a.png": png(0)}))
    zipped(tmp_path / "new.zip", {"a.png": png(1)}).replace(tmp_path / "a.zip")
    os.utime(tmp_path / "a.zip", ns=(1, 1))
    prepare(source, Preparation((24, 24)), cache=tmp_path / "cache")
    image_set = prepare(Zip(tmp_path / "a.zip"), Preparation((24, 24)), cache=tmp_path / "cache")
    assert (image_set.images[0] == noise(1)).all()


def changed(path: Path, old: bytes, new: bytes, *, times: int) -> Path:
    """An archive with some bytes of its headers changed."""
    content = path.read_bytes()
    assert content.count(old) == times
    return put(path, content.replace(old, new))


def lying(path: Path, method: int, size: int, said: int) -> Path:
    """A zip archive with a sound picture, and a member of zeros that states another size than it has."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bomb.png", bytes(size), method)
        archive.writestr("a.png", png(), zipfile.ZIP_STORED)
        packed = archive.getinfo("bomb.png").compress_size
    sizes = [packed.to_bytes(4, "little") + number.to_bytes(4, "little") for number in (size, said)]
    return changed(path, sizes[0], sizes[1], times=2)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_member_that_is_larger_than_it_says_does_not_fill_the_memory(tmp_path: Path, method: int) -> None:
    path = lying(tmp_path / "a.zip", method, 60_000_000, 1_000)
    tracemalloc.start()
    try:
        image_set = prepare(Zip(path), Preparation((24, 24)), cache=tmp_path / "cache")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert [path for path, _ in image_set.skipped] == ["bomb.png"]
    assert image_set.names == ["a.png"]


def test_a_zip_member_that_says_it_is_huge_is_skipped_unread(tmp_path: Path) -> None:
    source = Zip(lying(tmp_path / "a.zip", zipfile.ZIP_DEFLATED, 9_999, 4_000_000_000))
    assert source.names == ["a.png"]
    assert source.skipped == [("bomb.png", "it would unpack to 4,000,000,000 bytes, more than 536,870,912")]


def test_an_encrypted_member_is_skipped_with_a_reason(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"secret.png": png(0)}, zipfile.ZIP_STORED)
    for head in (b"PK\3\4\x14\0", b"PK\1\2\x14\3\x14\0"):
        changed(path, head + b"\0\0", head + b"\1\0", times=1)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a.png", png(1))
    image_set = prepare(Zip(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == ["a.png"]
    assert [(path, "encrypted" in reason) for path, reason in image_set.skipped] == [("secret.png", True)]


def test_a_zip_member_without_a_name_is_no_image(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"X": png(0), "a.png": png(1)}, zipfile.ZIP_STORED)
    changed(path, b"X", b"\0", times=path.read_bytes().count(b"X"))  # Names end at a zero byte.
    assert Zip(path).names == ["a.png"]


def test_a_zip_member_with_damaged_bytes_is_skipped(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.png": png(0), "b.png": png(1)}, zipfile.ZIP_STORED)
    changed(path, png(0)[100:120], bytes(20), times=1)
    image_set = prepare(Zip(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == ["b.png"]
    assert "Bad CRC-32" in image_set.skipped[0].reason


@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
def test_a_zip_archive_that_was_cut_is_refused_as_its_list_is_at_the_end(tmp_path: Path, share: float) -> None:
    path = zipped(tmp_path / "a.zip", MEMBERS)
    put(path, path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(UserError, match=r"a\.zip cannot be read as an archive .* Give a sound zip or tar file"):
        Zip(path)
