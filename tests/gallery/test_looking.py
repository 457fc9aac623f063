"""What is computed for the gallery: searches, the map, parts of clusters, pictures."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dccm.data.decode import picture
from dccm.data.names import Names
from dccm.data.reopen import places_in, reopened
from dccm.errors import UserError
from dccm.gallery.example import Examples
from dccm.gallery.paths import Paths
from dccm.gallery.pictures import Pictures, Thumbnails
from dccm.gallery.space import Space
from dccm.runs.contents import StoredSource
from tests.support import few_examples


@few_examples
@given(st.lists(st.text("abAB./é", max_size=6), min_size=1, max_size=12), st.text("abAB./é", min_size=1, max_size=3))
def test_a_text_is_found_in_the_paths_that_hold_it(paths: list[str], text: str) -> None:
    assert Paths(paths).holding(text).tolist() == [text.lower() in path.lower() for path in paths]


def test_no_text_reaches_from_one_path_into_the_next() -> None:
    assert not Paths(["ab", "cd"]).holding("b\0c").any()
    assert not Paths(["ab", "cd"]).holding("bc").any()
    assert Paths(["ab", "caf\udce9"]).holding("\udce9").tolist() == [False, True]


def blobs(count: int, size: int) -> np.ndarray:
    """Three groups of directions in so many dimensions."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(3, size)) * 4
    rows: np.ndarray = (centres[np.arange(count) % 3] + generator.normal(size=(count, size))).astype(np.float32)
    return rows


@pytest.mark.parametrize("size", [1, 2, 5, 300])
def test_distances_in_few_dimensions_are_nearly_those_in_all(size: int) -> None:
    features = blobs(200, size)
    space = Space(features)
    directions = features / np.linalg.norm(features, axis=1, keepdims=True)
    exact = np.linalg.norm(directions - directions[7], axis=1)
    found = space.distances(7)
    assert found[7] == pytest.approx(0, abs=2e-3)
    if size <= 64:
        np.testing.assert_allclose(found, exact, atol=5e-3)
    assert np.corrcoef(found, exact)[0, 1] > 0.9 or size == 1
    np.testing.assert_allclose(space.distances_of(features[7]), found, atol=5e-3)
    assert space.map().shape == (200, 2)


def test_features_that_are_all_the_same_have_a_map_too() -> None:
    space = Space(np.zeros((10, 4), np.float32))
    assert np.isfinite(space.map()).all()
    assert np.isfinite(space.distances(3)).all()


def test_parts_are_the_groups_of_the_embedding() -> None:
    parts = Space(blobs(90, 20)).parts(np.arange(60), 3)
    assert sorted(set((part % 3).tolist()) == {int(part[0] % 3)} for part in parts) == [True] * 3
    assert sorted(np.concatenate(parts).tolist()) == list(range(60))


def test_pictures_are_upright_and_keep_their_proportions(tmp_path: Path) -> None:
    image = Image.new("RGB", (60, 30), "red")
    exif = image.getexif()
    exif[0x0112] = 6  # The camera was held on its side.
    image.save(tmp_path / "a.jpg", exif=exif)
    assert picture(tmp_path / "a.jpg").size == (30, 60)
    assert picture(tmp_path / "a.jpg", 20).size == (10, 20)
    assert picture(np.zeros((4, 6), np.uint8)).mode == "L"


def test_images_of_a_changed_folder_are_found_by_name(tmp_path: Path) -> None:
    for name in ("b", "c", "d"):
        Image.new("L", (8, 8)).save(tmp_path / f"{name}.png")
    source = reopened(str(tmp_path))
    assert source is not None
    assert places_in(source, Names(["a.png", "b.png", "d.png"])).tolist() == [-1, 0, 2]
    assert places_in(source, Names(["b.png", "c.png", "d.png"])).tolist() == [0, 1, 2]
    assert places_in(source, Names(["b.png", "x.png", "d.png"])).tolist() == [0, -1, 2]


def test_sources_are_opened_again_by_what_a_run_noted(tmp_path: Path) -> None:
    assert reopened("") is None
    digits = reopened("scikit-learn#digits")
    assert digits is not None
    assert len(digits) == 1797
    (tmp_path / "list.csv").write_text("path,split\na.png,train\nb.png,test\n")
    for name in ("a", "b"):
        Image.new("L", (8, 8)).save(tmp_path / f"{name}.png")
    part = reopened(f"{tmp_path / 'list.csv'}?split=test")
    assert part is not None
    assert list(part.names) == ["b.png"]


def test_an_image_that_is_gone_is_shown_as_it_was_prepared(tmp_path: Path) -> None:
    pixels = np.full((2, 8, 8, 3), 7, np.uint8)
    (tmp_path / "images" / "key").mkdir(parents=True)
    np.save(tmp_path / "images" / "key" / "images.npy", pixels)
    stored = StoredSource("folder", str(tmp_path / "gone"), "key", 2, (8, 8, 3), "aa")
    pictures = Pictures(stored, ["a.png", "b.png"], tmp_path)
    assert pictures.full(1).media_type == "image/png"
    other = StoredSource("folder", str(tmp_path / "gone"), "key", 3, (8, 8, 3), "aa")
    with pytest.raises(UserError, match="cannot be read any more"):
        Pictures(other, ["a.png", "b.png", "c.png"], tmp_path).full(1)


def test_broken_copies_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "thumbnails" / "x.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"this is no database" * 100)
    kept = Thumbnails(path)
    kept.put(3, b"\x89PNG")
    assert Thumbnails(path).get(3) == b"\x89PNG"
    assert kept.get(4) is None


def test_an_image_of_the_run_has_its_own_feature_as_an_example(tmp_path: Path) -> None:
    from dccm.commands.cluster import cluster
    from dccm.data.synthetic import bars

    images = tmp_path / "images"
    images.mkdir()
    for name, pixels in zip(bars(30, side=16).names, bars(30, side=16).images):
        Image.fromarray(pixels[..., 0]).save(images / f"{name}.png")
    finished = cluster(images, 3, "kmeans", output=tmp_path / "run", encoder="scratch", image_size=16)
    name = finished.image_set.names[5]
    feature = Examples(tmp_path / "run").feature((images / name).read_bytes())
    np.testing.assert_allclose(feature, finished.directory.read_embedding()[5], atol=1e-5)
    with pytest.raises(UserError, match="no image that can be read"):
        Examples(tmp_path / "run").feature(b"nothing")
    assert json.loads((tmp_path / "run" / "source.json").read_text())["place"]
