"""What can be wrong with tar archives alone."""

import gzip
import subprocess
import sys
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.sources import archive as module
from dccm.data.sources.archive import Tar
from dccm.errors import UserError
from tests.data.pictures import noise, png, put, rows, same_pixels
from tests.data.sources.archives import described, tar

PICTURES = {f"{number}.png": png(number) for number in range(3)}
STEP = 512 * (1 + -(-len(png(0)) // 512))
"""Bytes that a picture takes in a tar archive: its header, and itself in whole blocks."""
SPECIAL = [
    described("soft.png", 0, tarfile.SYMTYPE, "0.png"),
    described("hard.png", 0, tarfile.LNKTYPE, "0.png"),
    described("out.png", 0, tarfile.SYMTYPE, "../../secret.png"),
    described("character.png", 0, tarfile.CHRTYPE),
    described("block.png", 0, tarfile.BLKTYPE),
    described("pipe.png", 0, tarfile.FIFOTYPE),
    described("sparse.png", 0, tarfile.GNUTYPE_SPARSE),
]


def cut(path: Path, size: int) -> Path:
    return put(path, path.read_bytes()[:size])


def test_members_that_are_no_files_are_skipped_with_a_reason(tmp_path: Path) -> None:
    source = Tar(tar(tmp_path / "a.tar", PICTURES, [described("folder.png/", 0, tarfile.DIRTYPE), *SPECIAL]))
    assert source.names == list(PICTURES)
    assert source.skipped == [(member.name, "not a regular file") for member in SPECIAL]


@pytest.mark.parametrize("where", [STEP + 600, STEP + 512 + len(png(1)) - 1])
def test_an_archive_that_ends_within_a_picture_keeps_those_before(tmp_path: Path, where: int) -> None:
    source = Tar(cut(tar(tmp_path / "a.tar", PICTURES), where))
    image_set = prepare(source, Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == ["0.png"]
    assert [path for path, _ in image_set.skipped] == ["a.tar", "1.png"]
    assert "the archive is damaged behind its first 2 images" in image_set.skipped[0].reason
    assert image_set.skipped[1].reason == "the archive ends within it"


@pytest.mark.parametrize("where", [STEP, STEP + 1, STEP + 511])
def test_an_archive_that_ends_within_or_before_a_header_says_so(tmp_path: Path, where: int) -> None:
    source = Tar(cut(tar(tmp_path / "a.tar", PICTURES), where))
    assert source.names == ["0.png"]
    assert [path for path, _ in source.skipped] == ["a.tar"]
    assert "the archive is damaged behind its first 1 image" in source.skipped[0].reason


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", PICTURES)
    content = bytearray(path.read_bytes())
    content[STEP + 20 : STEP + 40] = b"x" * 20
    source = Tar(put(path, content))
    assert source.names == ["0.png"]
    assert "the archive is damaged behind its first 1 image" in source.skipped[0].reason


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.bz2", ".tar.xz"])
def test_a_compressed_archive_that_was_cut_keeps_what_is_before_the_damage(tmp_path: Path, suffix: str) -> None:
    # Noise does not shrink, and bzip2 works in blocks of 900 kB, so the pictures are many.
    path = tar(tmp_path / f"a{suffix}", {f"{number:04}.png": png(number, 64) for number in range(160)})
    cut(path, int(0.8 * path.stat().st_size))
    image_set = prepare(Tar(path), Preparation((64, 64)), cache=tmp_path / "cache", workers=1)
    assert 60 <= len(image_set.images) < 160
    assert image_set.names == [f"{number:04}.png" for number in range(len(image_set.images))]
    assert all((image_set.images[number] == noise(number, 64)).all() for number in (0, len(image_set.images) - 1))
    assert any("the archive is damaged" in reason for path, reason in image_set.skipped)
    assert len(rows(tmp_path / "cache")) == len(image_set.images) + len(image_set.skipped)


def test_damaged_bytes_in_a_gzip_file_are_noticed(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar.gz", {f"{number}.png": png(number) for number in range(40)})
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :: 7] = bytes(len(content[len(content) // 2 :: 7]))
    image_set = prepare(Tar(put(path, content)), Preparation((24, 24)), cache=tmp_path / "cache")
    assert 10 < len(image_set.images) < 40
    assert image_set.skipped


def test_a_member_that_says_it_is_huge_is_skipped_and_ends_the_archive(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", {"a.png": png()})
    head = described("huge.png", 2**40).tobuf(tarfile.GNU_FORMAT)
    source = Tar(put(path, path.read_bytes()[:STEP] + head + bytes(5_000)))
    assert source.names == ["a.png"]
    assert source.skipped[0] == ("huge.png", "it would unpack to 1,099,511,627,776 bytes, more than 536,870,912")
    assert "the archive is damaged behind its first 1 image" in source.skipped[1].reason


@pytest.mark.parametrize("name", ["bomb.tar.gz", "bomb.tar"])
@pytest.mark.parametrize("member", ["bomb.png", "bomb.bin"])
def test_a_bomb_of_zeros_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, member: str, name: str
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1_000_000)  # A real bomb takes long to make.
    with tarfile.open(tmp_path / name, "w:gz") as archive:
        archive.addfile(described(member, 40_000_000), fileobj=Zeros())  # type: ignore[arg-type]
        archive.addfile(described("a.png", 40_000_000), fileobj=Zeros())  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="unpacks to more than 200 times its size, .* give the folder"):
            Tar(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


class Zeros:
    """A file of zeros without end."""

    def read(self, size: int) -> bytes:
        return bytes(size)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_name_that_would_fill_the_memory_is_not_read(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(tar(tmp_path / "a.tar", {"a.png": png()}).read_bytes()[:STEP])
        file.write(described("name", 60_000_000, kind).tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(60_000_000))
        file.write((tmp_path / "a.tar").read_bytes())
    tracemalloc.start()
    try:
        source = Tar(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert source.names == ["a.png"]
    assert "the archive is damaged behind its first 1 image" in source.skipped[0].reason


def test_a_long_name_is_kept(tmp_path: Path) -> None:
    name = "a" * 4_000 + ".png"
    path = tar(tmp_path / "a.tar", {name: png(), "broken" + name: b"nothing"})
    image_set = prepare(Tar(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == [name]
    assert [path for path, _ in image_set.skipped] == ["broken" + name]


def negative(how: str) -> bytes:
    """A picture's header that leads the reader back to itself."""
    if how == "pax":
        member = described("back.png")
        member.pax_headers = {"size": "-1536"}
        return member.tobuf(tarfile.PAX_FORMAT)
    head = bytearray(described("back.png", 0, tarfile.GNUTYPE_SPARSE if how == "sparse" else tarfile.REGTYPE).tobuf())
    head[124:136] = (2**96 - 512).to_bytes(12, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def test_a_member_of_negative_size_does_not_lead_round_in_circles(tmp_path: Path) -> None:
    start = tar(tmp_path / "a.tar", {"a.png": png()}).read_bytes()[:STEP]
    paths = [put(tmp_path / f"{how}.tar", start + negative(how) + bytes(2_000)) for how in ("header", "pax", "sparse")]
    code = """
import sys
from pathlib import Path
from dccm.data.sources.archive import Tar
for source in map(Tar, map(Path, sys.argv[1:])):
    print(source.path.stem, *source.names, source.skipped[0].reason.split(":")[0])
"""
    # In a process of its own: nothing else would end a reader that goes round in circles.
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=60, check=True)
    end = "a.png the archive is damaged behind its first 1 image"
    assert done.stdout.splitlines() == [f"header {end}", f"pax {end}", f"sparse {end}"]


def test_pictures_between_other_members_are_found(tmp_path: Path) -> None:
    members = {"0.txt": b"x" * 700, "1.png": png(1), "2.json": b"{}", "3.png": png(3)}
    source = Tar(tar(tmp_path / "a.tar.xz", members))
    assert source.names == ["1.png", "3.png"]
    assert same_pixels(source, 1, noise(3))
