"""`dccm cache`: what is kept is seen, checked to the byte, and cleared where nobody needs it."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dccm.cli import app
from dccm.commands.cache import check_kept, clear_kept, list_kept, list_sizes
from dccm.data.cache import locked
from dccm.data.read import read_images
from dccm.errors import UserError
from dccm.runs.features import features_of_images
from tests.data.pictures import photos, prepared_folder
from tests.runs.test_features import Counting


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Prepared images and features of them."""
    images = read_images(photos(tmp_path / "photos", 5), image_size=8, cache=tmp_path / "cache")
    encoder = Counting()
    encoder.feature_size = 8 * 8 * 3
    features_of_images(images, encoder, cache=tmp_path / "cache")
    return tmp_path / "cache"


def states(cache: Path) -> list[str]:
    return [row["state"] for row in check_kept(cache=cache)]


def flip_keeping_time(path: Path, place: int) -> None:
    """As a disk forgets: neither size nor time tell."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_is_kept_is_listed_with_its_size(cache: Path) -> None:
    assert [(row["kind"], row["images"]) for row in list_kept(cache)] == [("images", 5), ("features", 5)]
    sizes = {row["kind"]: row["bytes"] for row in list_sizes(cache)}
    on_disk = sum(path.stat().st_size for path in (cache / "images").rglob("*") if path.is_file())
    assert sizes["images"] == on_disk
    assert sizes["all"] == sizes["images"] + sizes["features"]
    assert list_kept(cache / "nowhere") == []


@pytest.mark.parametrize("name", ["images.npy", "kept.i64", "hashes.u64", "manifest.csv"])
def test_a_bit_that_the_disk_forgot_is_found_and_made_anew(cache: Path, tmp_path: Path, name: str) -> None:
    assert states(cache) == ["sound", "sound"]
    flip_keeping_time(prepared_folder(cache) / name, -2)
    said: list[str] = []
    read_images(tmp_path / "photos", image_size=8, cache=cache, say=said.append)
    assert said == []  # Sizes and times tell nothing, and all bytes are not read each time.
    assert states(cache) == ["damaged", "sound"]
    read_images(tmp_path / "photos", image_size=8, cache=cache, say=said.append)
    assert said == ["The images have changed since they were prepared; they are prepared anew."]
    assert states(cache) == ["sound", "sound"]


def test_forgotten_bits_of_features_and_of_heads_are_found(cache: Path) -> None:
    flip_keeping_time(next((cache / "features").glob("*/features.npy")), -1)
    flip_keeping_time(prepared_folder(cache) / "images.npy", 60)
    assert states(cache) == ["damaged", "damaged"]


def test_all_or_what_is_named_is_cleared(cache: Path) -> None:
    key = list_kept(cache)[0]["key"]
    assert clear_kept([key[:6]], cache).sentence().startswith("1 of 1 removed, ")
    assert [row["kind"] for row in list_kept(cache)] == ["features"]
    with pytest.raises(UserError, match="'zzz' must be the beginning of one key, and it is of 0"):
        clear_kept(["zzz"], cache)
    assert clear_kept(cache=cache)[:2] == (1, 0)
    assert list_kept(cache) == []


def test_what_another_process_is_at_work_on_stays(cache: Path) -> None:
    with locked(prepared_folder(cache), lambda: None):
        cleared = clear_kept(cache=cache)
        assert cleared.in_use == 1
        assert cleared.sentence().endswith("In use by another process, so they stay: 1.")
    assert [row["kind"] for row in list_kept(cache)] == ["images"]
    assert states(cache) == ["sound"]


def test_the_command_ends_with_1_where_something_is_damaged(cache: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["cache", *words, "--cache", str(cache)])
        return done.exit_code, done.output

    assert run("check", "--json")[0] == 0
    flip_keeping_time(prepared_folder(cache) / "images.npy", -1)
    code, said = run("check", "--json")
    assert (code, [row["state"] for row in json.loads(said)]) == (1, ["damaged", "sound"])
    assert "images" in run("list")[1]
    assert "all" in run("size")[1]
    assert run("clear")[0] == 0
    assert run("list") == (0, "Nothing is there.\n")
