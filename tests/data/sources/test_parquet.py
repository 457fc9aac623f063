import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.read import open_source
from dccm.data.sources.parquet import Parquet
from dccm.errors import UserError
from tests.data.pictures import noise, png, put, same_pixels

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow comes with dccm[data]")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow comes with dccm[data]")


def table(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def cells(*numbers: int) -> list[dict[str, Any]]:
    """Images as Hugging Face writes them."""
    return [{"bytes": png(number), "path": f"{number}.png"} for number in numbers]


def opened(path: Path) -> Parquet:
    source = open_source(path)
    assert isinstance(source, Parquet)
    return source


def test_a_column_of_bytes_and_paths_is_read(tmp_path: Path) -> None:
    source = opened(table(tmp_path / "a.parquet", {"image": cells(0, 1, 2), "label": [3, 1, 2]}))
    assert source.names == ["0.png", "1.png", "2.png"]
    assert all(same_pixels(source, number, noise(number)) for number in range(3))
    assert source.labels is not None
    assert source.labels.tolist() == [3, 1, 2]


def test_a_column_of_plain_bytes_is_read_and_rows_are_numbered(tmp_path: Path) -> None:
    source = opened(table(tmp_path / "a.parquet", {"img": [png(0), png(1)]}))
    assert source.names == ["a/0", "a/1"]
    assert same_pixels(source, 1, noise(1))
    assert source.labels is None


@pytest.mark.parametrize("where", [".", "data"])
def test_the_files_of_a_folder_belong_together_in_the_order_of_their_names(tmp_path: Path, where: str) -> None:
    table(tmp_path / where / "train-00001.parquet", {"image": cells(2, 3), "label": [2, 3]})
    table(tmp_path / where / "train-00000.parquet", {"image": cells(0, 1), "label": [0, 1]})
    put(tmp_path / "README.md", b"text")
    source = opened(tmp_path)
    assert source.names == ["0.png", "1.png", "2.png", "3.png"]
    assert source.labels is not None
    assert source.labels.tolist() == [0, 1, 2, 3]
    assert all(same_pixels(source, number, noise(number)) for number in range(4))


def test_groups_of_rows_are_read_one_at_a_time_and_backwards_too(tmp_path: Path) -> None:
    source = opened(table(tmp_path / "a.parquet", {"image": cells(*range(7))}, row_group_size=3))
    assert [same_pixels(source, number, noise(number)) for number in (6, 0, 3, 2, 5)] == [True] * 5


@pytest.mark.parametrize(
    "images",
    [
        [{"bytes": png(0), "path": None}, {"bytes": png(1), "path": "1.png"}],
        [{"bytes": png(0), "path": "same.png"}, {"bytes": png(1), "path": "same.png"}],
        [{"bytes": png(0)}, {"bytes": png(1)}],
        [{"bytes": png(0), "path": 7}, {"bytes": png(1), "path": 8}],
    ],
)
def test_rows_are_numbered_where_paths_are_missing_or_not_unique(tmp_path: Path, images: list[dict[str, Any]]) -> None:
    assert opened(table(tmp_path / "a.parquet", {"image": images})).names == ["a/0", "a/1"]


def test_rows_without_an_image_are_skipped_with_a_reason(tmp_path: Path) -> None:
    images = [None, *cells(1), {"bytes": None, "path": "elsewhere.png"}, {"bytes": b"nothing", "path": "x.png"}]
    path = table(tmp_path / "a.parquet", {"image": images, "label": [0, 1, 2, 3]})
    image_set = prepare(opened(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert image_set.names == ["a/1"]
    assert image_set.labels is not None
    assert image_set.labels.tolist() == [1]
    nothing = "the row holds no bytes of an image"
    assert image_set.skipped == [("a/0", nothing), ("a/2", nothing), ("a/3", "not an image of a known format")]


def test_splits_stay_with_their_images_and_a_cache_from_before_them_still_opens(tmp_path: Path) -> None:
    images = [*cells(0), {"bytes": b"nothing", "path": "x.png"}, *cells(2)]
    path = table(tmp_path / "a.parquet", {"image": images, "split": ["train", "train", "test"]})
    source = opened(path)
    source.splits = None  # As when nothing knew of them.
    assert prepare(source, Preparation((24, 24)), cache=tmp_path / "cache").splits is None
    told: list[int] = []
    image_set = prepare(
        opened(path), Preparation((24, 24)), cache=tmp_path / "cache", on_progress=lambda done, _: told.append(done)
    )
    assert told == []
    assert image_set.splits is not None
    assert image_set.splits.tolist() == ["train", "test"]


def test_a_file_without_splits_has_none(tmp_path: Path) -> None:
    assert opened(table(tmp_path / "a.parquet", {"image": cells(0, 1), "label": [0, 1]})).splits is None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["cat", "dog"], ["cat", "dog"]), ([1, None], None), ([None, None], None), ([0.5, 1.5], None), ([[1], [2]], None)],
)
def test_labels_are_whole_numbers_or_words_and_none_is_missing(
    tmp_path: Path, labels: list[Any], expected: list[str] | None
) -> None:
    found = opened(table(tmp_path / "a.parquet", {"image": cells(0, 1), "label": labels})).labels
    assert (found if found is None else found.tolist()) == expected


def test_labels_of_uneven_lists_are_none(tmp_path: Path) -> None:
    assert opened(table(tmp_path / "a.parquet", {"image": cells(0, 1), "label": [[1], [2, 3]]})).labels is None


def test_a_file_without_images_is_refused_with_its_columns(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must have a column of images called image or img .*, it has text, label"):
        opened(table(tmp_path / "a.parquet", {"text": ["x"], "label": [1]}))


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    empty = pyarrow.array([], type=pyarrow.binary())
    with pytest.raises(UserError, match="has no rows. Give a file that holds images"):
        opened(table(tmp_path / "a.parquet", {"image": empty}))


@pytest.mark.parametrize("size", [0, 3, 50, 1_000, -1, -20])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, size: int) -> None:
    path = table(tmp_path / "a.parquet", {"image": cells(0, 1)})
    put(path, path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"a\.parquet cannot be read as parquet .* Give a sound file"):
        opened(path)


def test_damage_within_the_images_harms_those_images_alone(tmp_path: Path) -> None:
    options = {"row_group_size": 2, "compression": "NONE", "use_dictionary": False}
    path = table(tmp_path / "a.parquet", {"image": [png(number) for number in range(4)]}, **options)
    content = path.read_bytes()
    start = content.index(png(3)) - 4
    put(path, content[:start] + b"\xff\xff\xff\x7f" + content[start + 4 :])  # The length of the last image.
    image_set = prepare(opened(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert list(image_set.names[:2]) == ["a/0", "a/1"]
    assert [path for path, _ in image_set.skipped][-1] == "a/3"
    assert all(reason for _, reason in image_set.skipped)


def test_damage_within_names_or_labels_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", {"image": cells(0, 1), "label": ["first", "second"]}, compression="NONE")
    content = path.read_bytes()
    start = content.index(b"first") - 4
    put(path, content[:start] + b"\xff\xff\xff\x7f" + content[start + 4 :])
    with pytest.raises(UserError, match=r"a\.parquet cannot be read as parquet"):
        opened(path)


def test_names_that_are_no_text_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", {"image": cells(0, 1)}, compression="NONE", write_statistics=False)
    put(path, path.read_bytes().replace(b"0.png", b"\xff\xfe\xff\xfe\xff"))
    with pytest.raises(UserError, match=r"a\.parquet cannot be read as parquet .*utf-8"):
        opened(path)


def test_a_file_of_another_layout_among_the_others_is_skipped_row_by_row(tmp_path: Path) -> None:
    table(tmp_path / "a.parquet", {"image": cells(0)})
    table(tmp_path / "b.parquet", {"picture": [png(1)]})
    image_set = prepare(opened(tmp_path), Preparation((24, 24)), cache=tmp_path.with_name("cache-of-layouts"))
    assert len(image_set.images) == 1
    assert [(path, bool(reason)) for path, reason in image_set.skipped] == [("b/0", True)]


def test_the_fingerprint_changes_when_one_of_the_files_does(tmp_path: Path) -> None:
    for name in ("a", "b"):
        table(tmp_path / f"{name}.parquet", {"image": cells(0)})
    before = opened(tmp_path)
    assert opened(tmp_path).fingerprint() == before.fingerprint()
    os.utime(tmp_path / "b.parquet", ns=(1, 1))
    assert opened(tmp_path).fingerprint() != before.fingerprint()


def test_images_are_found_in_the_cache_without_reading_the_rows_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "a.parquet", {"image": cells(0, 1)})
    first = prepare(opened(path), Preparation((24, 24)), cache=tmp_path / "cache")
    monkeypatch.setattr(Parquet, "read", None)
    second = prepare(opened(path), Preparation((24, 24)), cache=tmp_path / "cache")
    assert np.array_equal(first.images, second.images)
    assert first.names == second.names
