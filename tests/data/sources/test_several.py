"""Several sources as one, and a list on standard input."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from dccm.data.images import ImageSet
from dccm.data.read import open_source, read_images
from dccm.data.sources.several import Sources
from dccm.errors import UserError
from tests.data.pictures import noise, photos, png, put
from tests.data.sources.archives import tar, zipped


def read(tmp_path: Path, *names: str) -> ImageSet:
    sources = Sources(str(tmp_path / name) for name in names)
    return read_images(sources, image_size=24, cache=tmp_path / "cache")


def test_a_folder_an_archive_and_an_array_are_one_set_of_images(tmp_path: Path) -> None:
    photos(tmp_path / "a", 3)
    zipped(tmp_path / "b.zip", {"x.png": png(7), "bad.png": b"nothing", "../up.png": png(8)})
    np.save(tmp_path / "c.npy", np.stack([noise(9), noise(10)]))
    image_set = read(tmp_path, "a", "b.zip", "c.npy")
    names = ["a/00.png", "a/01.png", "a/02.png", "b.zip/x.png", "c.npy/0", "c.npy/1"]
    assert list(image_set.names) == [f"{tmp_path}/{name}" for name in names]
    for number, seed in enumerate((0, 1, 2, 7, 9, 10)):
        assert np.array_equal(image_set.images[number], noise(seed))
    reasons = {path.removeprefix(f"{tmp_path}/"): reason for path, reason in image_set.skipped}
    assert reasons == {
        "b.zip/../up.png": "its name leads out of the archive",
        "b.zip/bad.png": "not an image of a known format",
    }


def test_a_change_of_any_of_them_is_noticed(tmp_path: Path) -> None:
    photos(tmp_path / "a", 2)
    tar(tmp_path / "b.tar.gz", {"x.png": png(7)})
    before = read(tmp_path, "a", "b.tar.gz").origin
    assert read(tmp_path, "a", "b.tar.gz").origin == before
    put(tmp_path / "a" / "01.png", png(11))
    assert np.array_equal(read(tmp_path, "a", "b.tar.gz").images[1], noise(11))
    assert read(tmp_path, "a", "b.tar.gz").origin.key == before.key


def test_labels_are_known_where_all_know_theirs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        photos(tmp_path / name / "cat", 1)
        photos(tmp_path / name / "dog", 1)
    source = open_source(Sources((tmp_path / "a", tmp_path / "b")), class_folders=True)
    assert source.labels is not None
    assert source.labels.tolist() == ["cat", "dog"] * 2
    assert open_source(Sources((tmp_path / "a", tmp_path / "b"))).labels is None


def test_the_same_source_twice_is_refused(tmp_path: Path) -> None:
    photos(tmp_path / "a", 2)
    with pytest.raises(UserError, match=r"Sources must differ, got .*/a twice"):
        read(tmp_path, "a", "a")


@pytest.mark.parametrize("between", [b"\n", b"\r\n", b"\0"])
def test_a_list_on_standard_input_is_relative_to_the_current_folder(
    between: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos(tmp_path / "a", 3)
    monkeypatch.chdir(tmp_path)
    typed = between.join([b"a/02.png", b"gone.png", b"a/00.png", b""])
    origins = []
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed)))
        image_set = read_images("-", image_size=24, cache=tmp_path / "cache")
        assert list(image_set.names) == ["a/02.png", "a/00.png"]
        assert [path for path, _ in image_set.skipped] == ["gone.png"]
        origins.append(image_set.origin)
    assert origins[0] == origins[1]
    assert origins[0].key
