"""What may be remembered of an image that cannot be read, and what stops everything."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dccm.data.passing import is_passing, require_means
from dccm.data.read import open_source, read_images
from dccm.errors import UserError
from tests.data.pictures import photos, png, put
from tests.data.sources.archives import tar


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOENT, errno.ESTALE, errno.ETIMEDOUT, errno.EBUSY])
def test_what_the_system_refuses_is_of_the_moment(number: int) -> None:
    assert is_passing(OSError(number, os.strerror(number)))


@pytest.mark.parametrize(
    "error",
    [
        OSError("image file is truncated"),  # Pillow's.
        OSError(0, "not a regular file"),
        OSError(errno.ENAMETOOLONG, "File name too long"),
        OSError(errno.EISDIR, "Is a directory"),
        ValueError("its pixels are not all numbers"),
        SyntaxError("broken PNG file"),
    ],
)
def test_what_the_file_is_may_be_remembered(error: Exception) -> None:
    assert not is_passing(error)
    require_means(error)


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (RuntimeError("can't start new thread"), "memory or processes for another thread"),
        (OSError(errno.EMFILE, "Too many open files"), r"open files of this process \(ulimit -n\)"),
        (MemoryError(), "memory"),
    ],
)
def test_what_no_other_image_would_have_either_stops(error: Exception, what: str) -> None:
    with pytest.raises(UserError, match=f"^Out of {what} while images were read"):
        require_means(error)


@pytest.mark.parametrize("refused", ["stat", "iterdir"])
def test_a_listing_without_open_files_stops_too(refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, known = photos(tmp_path / "photos", 3), getattr(Path, refused)
    put(folder / "below" / "a.png", png())

    def refuse(path: Path, **options: Any) -> Any:
        if path.name in ("01.png", "below"):
            raise OSError(errno.EMFILE, "Too many open files")
        return known(path, **options)

    monkeypatch.setattr(Path, refused, refuse)
    with pytest.raises(UserError, match="^Out of open files of this process"):
        open_source(folder)


def test_a_folder_of_archives_without_open_files_stops_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shards").mkdir()
    tar(tmp_path / "shards" / "a.tar", {"a.png": png()})
    known = Path.stat

    def refuse(path: Path, **options: Any) -> Any:
        if path.name == "a.tar":
            raise OSError(errno.EMFILE, "Too many open files")
        return known(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(UserError, match="^Out of open files of this process"):
        open_source(tmp_path / "shards")


def test_no_lack_of_means_decides_the_size_of_the_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = photos(tmp_path / "photos", 3, side=96)
    assert read_images(folder, cache=tmp_path / "cache").images.shape[1] == 96

    def none_left(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("dccm.data.look.header_of", none_left)
    with pytest.raises(UserError, match="^Out of open files"):
        read_images(folder, cache=tmp_path / "cache")
