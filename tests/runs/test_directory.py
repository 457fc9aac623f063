import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dccm.config import DataConfig, TrainingConfig
from dccm.data.images import Duplicate, ImageSet, Skipped
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.runs.contents import Assignments, Begun
from dccm.runs.directory import RunDirectory
from dccm.runs.result import Cost, RunResult
from tests.report.runs import write_run

ODD = os.fsdecode(b'latin \xe9, "quoted"\n.png')
ASSIGNED = Assignments(
    [ODD, "b.png", "c.png"],
    np.array([1, 0, 1]),
    np.array([0.5, 1.0, 0.25], np.float32),
    np.array([False, False, True]),
    np.array([True, False, False]),
)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "run")
    made.create()
    return made


def test_assignments_come_back_whatever_the_names_are(directory: RunDirectory) -> None:
    directory.write_assignments(ASSIGNED)
    found = directory.read_assignments()
    assert found.paths == ASSIGNED.paths
    assert found.clusters.tolist() == [1, 0, 1]
    assert found.confidences.tolist() == [0.5, 1.0, 0.25]


def test_an_embedding_is_written_block_by_block_and_read_mapped(directory: RunDirectory) -> None:
    features = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    with directory.writing_embedding(ASSIGNED.paths) as add:
        add(features[:2])
        assert not directory.embedding.exists()
        add(features[2:])
    found = directory.read_embedding()
    assert isinstance(found, np.memmap)
    assert np.array_equal(found, features)
    assert np.array_equal(np.load(directory.embedding), features)


def test_an_embedding_that_was_stopped_is_not_there(directory: RunDirectory) -> None:
    def stopped() -> None:
        with directory.writing_embedding(ASSIGNED.paths) as add:
            add(np.zeros((2, 5), np.float32))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not list(directory.path.iterdir())


@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros((3, 2)), np.array([{}], dtype=object)])
def test_an_embedding_that_is_none_is_named(directory: RunDirectory, array: np.ndarray) -> None:
    np.save(directory.embedding, array)
    with pytest.raises(
        UserError, match=r"embedding\.npy is broken \(.*\); take a sound copy, or write the folder anew"
    ):
        directory.read_embedding()


def test_where_the_images_came_from_comes_back(directory: RunDirectory) -> None:
    image_set = bars(6, side=8, channels=3)
    directory.write_source(image_set)
    found, origin = directory.read_source(), image_set.origin
    assert (found.images, found.shape, found.checksum) == (6, (8, 8, 3), origin.checksum)
    assert (found.kind, found.place, found.key) == (origin.kind, origin.place, origin.key)
    directory.source.write_text("{}")
    with pytest.raises(
        UserError, match=r"source\.json is broken \(kind is missing\); take a sound copy, or write the folder anew"
    ):
        directory.read_source()


def test_other_pixels_have_another_checksum() -> None:
    first, second = bars(6, side=8), bars(6, side=8, seed=1)
    assert first.origin.checksum != second.origin.checksum
    assert first.origin.checksum == bars(6, side=8).origin.checksum


def test_what_a_run_was_begun_with_comes_back(directory: RunDirectory) -> None:
    begun = Begun("dccm", "fast", "", 24, "00c0ffee")
    directory.write_config(begun, (DataConfig(n_clusters=3), TrainingConfig(budget_minutes=2.5)))
    stored = directory.read_config()
    assert stored.begun == begun
    assert (stored.settings["n_clusters"], stored.settings["budget_minutes"]) == (3, 2.5)
    assert directory.holds_run


@pytest.mark.parametrize("text", ["[run", "", "[run]\nmethod = 'dccm'\n[settings]\n"])
def test_a_damaged_config_is_named(directory: RunDirectory, text: str) -> None:
    directory.config.write_text(text)
    with pytest.raises(UserError, match=r"config\.toml is broken \(.*; begin anew in another output folder"):
        directory.read_config()


def test_what_was_left_out_comes_back(directory: RunDirectory) -> None:
    assert not directory.read_skipped()
    assert not directory.read_duplicates()
    skipped, duplicates = [Skipped(ODD, "no, image")], [Duplicate("b.png", ODD)]
    directory.write_left_out(ImageSet(bars(2, side=8).images, ["a", "b"], None, skipped, duplicates))
    assert directory.read_skipped() == skipped
    assert directory.read_duplicates() == duplicates


def test_a_result_comes_back(directory: RunDirectory) -> None:
    cost = Cost(seconds=1.5, passes=2.0, peak_memory_mb=None)
    result = RunResult(
        "dccm",
        "fast",
        None,
        3,
        1,
        0,
        2,
        0,
        {"n_clusters": 2},
        dict.fromkeys(("acc", "nmi", "ari"), 1.0),
        None,
        cost,
        ["Odd."],
    )
    directory.write_result(result)
    assert directory.read_result() == result
    directory.write_result(replace(result, warnings=[]))
    assert directory.read_result().warnings == []


def test_thumbnails_come_back_and_smaller_ones_of_the_map(directory: RunDirectory) -> None:
    images = bars(60, side=80).images
    directory.write_thumbnails(images, np.array([7, 3, 59]))
    found = directory.read_thumbnails(60)
    assert found.row.tolist() == [7, 3, 59]
    assert np.array_equal(found.images, images[[7, 3, 59]])
    mapped = directory.read_thumbnails(60, of_map=True)
    assert mapped.row.tolist() == list(range(60))
    assert mapped.images.shape == (60, 40, 40, 1)


@pytest.mark.parametrize("name", ["config.toml", "letter.txt"])
def test_a_folder_that_holds_something_is_refused_without_words_of_the_command_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(UserError) as caught:
        RunDirectory(tmp_path).create()
    ends = {"config.toml": "another one, or resume that run.", "letter.txt": "another one."}
    assert str(caught.value).endswith(f"nothing is overwritten. Choose {ends[name]}")


def test_a_run_is_read_without_torch(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    code = "import sys; from dccm.runs.directory import RunDirectory\n"
    code += f"run = RunDirectory({str(run)!r}); run.read_assignments(run.read_result()); run.read_history()\n"
    code += "assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
