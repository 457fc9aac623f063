"""The page beside the assignments of new images."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dccm import cluster
from dccm.commands.predict import predict
from dccm.corrections.change import Change
from dccm.corrections.of_run import open_log
from dccm.data.images import ImageSet, Skipped
from dccm.data.synthetic import bars
from dccm.errors import visible
from dccm.report.assigned import Training, write_assigned
from dccm.runs.contents import Assignments
from dccm.runs.directory import RunDirectory
from tests.report.runs import HOSTILE_PATHS, Page, decoded

CLUSTERS = np.array([0] * 30 + [2] * 5 + [1])
SURE = np.linspace(0.99, 0.2, 36)
NAMES = [f"{number}.png" for number in range(36)]
KNOWN = Training({0: 10, 1: 10, 2: 20, 3: 40}, 0.9)


def page_of(
    folder: Path,
    names: Sequence[str] = NAMES,
    confidences: np.ndarray = SURE,
    training: Training = KNOWN,
    skipped: Sequence[Skipped] = (),
) -> Page:
    """Of 36 images: 30 in cluster 0, five in cluster 2, and the last one, an outlier, in cluster 1."""
    nowhere = np.zeros(36, bool)
    assignments = Assignments(names, CLUSTERS, confidences, confidences < 0.3, nowhere | (np.arange(36) == 35))
    images = np.random.default_rng(0).integers(0, 256, (36, 8, 8, 1)).astype(np.uint8)
    named = {2: "<b>cats</b>"}
    path = write_assigned(
        RunDirectory(folder), assignments, ImageSet(images, names, skipped=skipped), named, training, "m"
    )
    return Page(path.read_text("utf-8"))


def test_clusters_come_largest_first_with_their_share_here_and_in_training(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    assert [int(card.split("cluster-")[1].split('"')[0]) for card in page.cards()] == [0, 2, 1, 3]
    assert "<title>36 new images in 3 clusters</title>" in page.text
    first, _, _, empty = (re.sub(r"\s+", " ", card) for card in page.cards())
    assert "30 images · 83.3 %, in training 12.5 %" in first
    assert "0 images · 0.0 %, in training 50.0 %" in empty
    assert "None of these images." in empty
    assert "of the images that the model learnt from it was 0.900" in page.text


def test_the_surest_and_the_least_sure_images_of_a_cluster_are_shown(tmp_path: Path) -> None:
    titles = [image["title"] or "" for image in Page(page_of(tmp_path).cards()[0]).all("img")]
    shown = [title.split(".png")[0] for title in titles]
    assert shown == [*map(str, range(16)), *map(str, range(22, 30))]
    assert titles[0].endswith("confidence 0.990")


def test_outliers_and_rejected_images_are_counted_and_outliers_have_a_place_of_their_own(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    assert "All of its images are outliers." in page.cards()[2]
    assert "1 image is far from all that the model learnt from" in page.text
    assert "5 images were rejected as too unsure" in page.text
    assert all(decoded(image["src"]).size == (8, 8) for image in page.all("img"))


def test_the_first_fifty_skipped_files_are_listed(tmp_path: Path) -> None:
    page = page_of(tmp_path, skipped=[Skipped(f"bad{number}.png", "cut short") for number in range(60)])
    assert "60 files were not assigned; the first 50 are shown" in page.text
    assert "bad49.png" in page.text
    assert "bad50.png" not in page.text
    assert "1 file was not assigned." in page_of(tmp_path, skipped=[Skipped("a.png", "cut short")]).text


def test_names_of_strangers_never_become_markup_and_nothing_is_loaded(tmp_path: Path) -> None:
    names = [*HOSTILE_PATHS, *(f"{number}" for number in range(36 - len(HOSTILE_PATHS)))]
    page = page_of(tmp_path, names)
    assert not page.all("script")
    assert not page.all("b")
    assert not any("onerror" in attributes for _, attributes in page.tags)
    titles = page.titles()
    assert all(any(title.startswith(f"{visible(name)}\n") for title in titles) for name in HOSTILE_PATHS)
    assert all((image["src"] or "").startswith("data:image/") for image in page.all("img"))
    assert not re.search(r"https?://|@import|url\(", page.text)


def test_without_confidences_or_a_run_the_page_says_less(tmp_path: Path) -> None:
    page = page_of(tmp_path, confidences=np.full(36, np.nan), training=Training(unknown="The model stands alone."))
    assert "How large the clusters were in training is not known. The model stands alone." in page.text
    assert "How sure" not in page.text
    assert "mean confidence" not in page.text
    assert len(page.cards()) == 3


def test_a_page_of_a_thousand_clusters_stays_small(tmp_path: Path) -> None:
    count, clusters = 20_000, 1000
    images = np.broadcast_to(np.zeros((1, 8, 8, 1), np.uint8), (count, 8, 8, 1))
    names = [f"{number}.png" for number in range(count)]
    none, sure = np.zeros(count, bool), np.full(count, 0.5)
    assignments = Assignments(names, np.arange(count) % clusters, sure, none, none)
    path = write_assigned(RunDirectory(tmp_path), assignments, ImageSet(images, names), {}, Training(), "m")
    shown = path.read_text().count("<img ")
    assert 4000 <= shown <= 6000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("assigned") / "run"
    cluster(bars(24, side=8), 3, output=output, method="kmeans", device="cpu")
    return output


def test_a_prediction_into_a_folder_has_its_page(run: Path, tmp_path: Path) -> None:
    predicted = predict(run, bars(12, side=8, seed=1), output=tmp_path / "new", device="cpu")
    assert predicted.directory is not None
    page = Page(predicted.directory.report.read_text("utf-8"))
    assert "<title>12 new images in" in page.text
    assert "in training" in page.text


@pytest.mark.parametrize("file", ["assignments.csv", "result.json"])
def test_a_run_that_is_broken_costs_no_assignments(run: Path, tmp_path: Path, file: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    (broken / file).write_text("{")
    predicted = predict(broken, bars(12, side=8), output=tmp_path / "new", device="cpu")
    assert predicted.directory is not None
    text = predicted.directory.report.read_text("utf-8")
    assert f"{file} is broken" in text
    assert len(predicted.directory.read_assignments().paths) == 12


def test_clusters_are_those_of_the_corrections(run: Path, tmp_path: Path) -> None:
    corrected = RunDirectory(tmp_path / "corrected")
    shutil.copytree(run, corrected.path)
    log = open_log(corrected, corrected.read_assignments(), 3)
    log.add(Change(kind="merge", clusters=(0, 1), cluster=1), "somebody")
    log.add(Change(kind="rename", cluster=1, name="bars"), "somebody")
    log.close()
    predicted = predict(corrected.path, bars(12, side=8, seed=1), output=tmp_path / "new", device="cpu")
    assert predicted.directory is not None
    page = Page(predicted.directory.report.read_text("utf-8"))
    numbers = sorted(int(card.split("cluster-")[1].split('"')[0]) for card in page.cards())
    assert numbers == [1, 2]
    assert "Cluster 1: <bdi>bars</bdi>" in page.text
