"""Sections that depend on features, labels, corrections and duplicates of a run."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.corrections.change import Change
from dccm.corrections.of_run import open_log
from dccm.data.images import Duplicate
from dccm.report import write_report
from dccm.report.pictures import sheet
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import Again, Judgement, write_judgement
from dccm.runs.members import MAPPED
from tests.gallery.chromium import browser
from tests.report.runs import HOSTILE_PATHS, Page, change_result, decoded, page_of, write_run

EVIL = '<b onclick="alert(3)">evil</b>'


def with_features(run: Path) -> RunDirectory:
    """The same run with an embedding, in which clusters lie apart but for two of them, and pictures for its map."""
    directory = RunDirectory(run)
    assignments, images = directory.read_assignments(), directory.read_thumbnails(1797)
    draw = np.random.default_rng(0)
    places = np.where(assignments.clusters == 5, 6, assignments.clusters)
    features = 10 * np.eye(10)[places] + draw.normal(size=(len(places), 10))
    with directory.writing_embedding(assignments.paths) as add:
        add(features.astype(np.float32))
    pictures = np.zeros((1797, 8, 8, 1), np.uint8)
    pictures[images.row] = images.images
    directory.write_thumbnails(pictures, images.row)
    return directory


def changed(directory: RunDirectory, *changes: Change) -> None:
    log = open_log(directory, directory.read_assignments(), 10)
    for change in changes:
        log.add(change, "somebody")
    log.close()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run with everything; written once, read by several tests."""
    run = write_run(tmp_path_factory.mktemp("full") / "run")
    directory = with_features(run)
    clusters, paths = directory.read_assignments().clusters, directory.read_assignments().paths
    labels = [f"{EVIL}{cluster}" if cluster == 3 else f"class {cluster}" for cluster in clusters]
    labels[7] = "class 1"  # An image of cluster 7.
    directory.write_labels(paths, labels)
    directory.write_near_duplicates([Duplicate(paths[1], paths[0]), Duplicate("nowhere", paths[0])])
    again = Again("b", 1, 9, 0.8, 0.8, [0.9, 0.1, *[1.0] * 8])
    judged = Judgement(9, 0.9, 0.9, 0.3, [], 9, 0.9, 0.9, [0.5, *[1.0] * 9], [again])
    write_judgement(directory.judgement, judged)
    write_report(directory)
    return directory


def test_the_map_is_a_drawing_and_its_script_the_only_one_that_may_run(full: RunDirectory) -> None:
    text = full.report.read_text("utf-8")
    page = Page(text)
    assert text.count("<circle") == MAPPED
    assert len(page.all("script")) == 1
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_the_picture_of_each_point_is_on_one_sheet() -> None:
    images = np.random.default_rng(0).integers(0, 256, (7, 8, 12, 1), dtype=np.uint8)
    made = sheet(images)
    assert (made.columns, made.rows, made.width, made.height) == (3, 3, 12, 8)
    pixels = np.asarray(decoded(made.uri))
    assert np.array_equal(pixels[8:16, 12:24], images[4, ..., 0])
    assert not pixels[16:, 12:].any()


def test_clusters_that_nothing_parts_are_named_and_those_apart_are_not(full: RunDirectory) -> None:
    text = full.report.read_text("utf-8")
    assert "Nothing lies between Cluster 5 and Cluster 6:" in text
    assert text.split('id="near"')[1].split("</section>")[0].count("<li") == 1


def test_central_surest_and_doubtful_images_have_rows_of_their_own(full: RunDirectory) -> None:
    card = Page(full.report.read_text("utf-8")).cards()[0]
    assert re.findall("<h4>(.*?)</h4>", card) == ["Central", "Surest"]  # Only the surest were kept in this run.
    assert card.count("<img") == 4 + 8


def test_the_summary_names_what_does_not_hold_still_and_what_was_not_found_again(full: RunDirectory) -> None:
    text = full.report.read_text("utf-8")
    summary = text.split('class="trust')[1].split("</section>")[0]
    assert (
        '<a href="#cluster-0">Cluster 0</a> loses images when these are slightly perturbed: doubt it first.' in summary
    )
    assert '<a href="#cluster-1">Cluster 1</a> was not found again with another seed.' in summary
    assert "60 files were</a> skipped." in summary
    assert "1 cluster is empty" in summary


def test_classes_stand_against_clusters_and_never_become_markup(full: RunDirectory) -> None:
    text = full.report.read_text("utf-8")
    section = text.split('id="truth"')[1].split("</section>")[0]
    assert "1 image is in another cluster than their class" not in text
    assert '1 image of <bdi>class 1</bdi> in <a href="#cluster-7">Cluster 7</a>' in section
    assert EVIL not in text
    assert "&lt;b onclick=" in section
    assert section.count("<tr>") == 1 + 9


def test_labels_can_be_given_when_the_page_is_written(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    np.save(tmp_path / "labels.npy", np.zeros(1797, np.int64))
    assert 'id="truth"' not in page_of(run).text
    write_report(RunDirectory(run), tmp_path / "labels.npy")
    assert "Most often mixed:" in (run / "report.html").read_text("utf-8")


def test_duplicates_in_different_clusters_are_pointed_out(full: RunDirectory) -> None:
    section = full.report.read_text("utf-8").split('id="duplicates"')[1].split("</section>")[0]
    assert "2 images are nearly the same as an earlier one; 1 pair is in different clusters" in section
    assert HOSTILE_PATHS[0] not in section
    assert "&lt;script&gt;" in section


def test_names_merges_and_moves_are_shown_and_counted(tmp_path: Path) -> None:
    directory = RunDirectory(write_run(tmp_path / "run"))
    changed(
        directory,
        Change(kind="rename", cluster=0, name=EVIL),
        Change(kind="merge", clusters=[1, 2], cluster=1),
        Change(kind="create", cluster=10, name="new", images=[5, 6]),
        Change(kind="move", images=[7, 8], cluster=-1),
    )
    page = page_of(directory.path)
    assert "4 corrections were made by people" in page.text
    assert "2 clusters have a name" in page.text
    assert EVIL not in page.text
    sizes = dict(re.findall(r"<bdi>(.*?)</bdi></h3>\s*<p>.*?(\d+) image", page.text))
    before = np.bincount(directory.read_assignments().clusters, minlength=10)
    assert sizes["new"] == "2"
    assert sizes["No cluster"] == "2"
    assert "Cluster 2" not in sizes
    assert int(sizes["Cluster 1"]) >= before[1] + before[2] - 4
    changed(directory, Change(kind="undo", change=4))
    assert "3 corrections were made" in page_of(directory.path).text


def test_rejected_images_stand_under_their_best_cluster_also_when_it_was_merged(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    directory = RunDirectory(run)
    assignments = directory.read_assignments()
    rejected = np.arange(1797) % 10 == 0
    directory.write_assignments(assignments._replace(rejected=rejected))
    changed(directory, Change(kind="merge", clusters=[0, 3], cluster=3))
    text = page_of(run).text
    sizes = np.bincount(assignments.clusters)
    assert f"{sizes[0] + sizes[3]} images ·" in text
    assert "180 images were too unsure for any cluster" in text
    assert ">No cluster</bdi>" not in text


def test_one_file_was_skipped(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "skipped.csv").write_text("path,reason\nbad.png,cut short\n")
    assert "1 file was skipped." in page_of(run).text


def many_images(run: Path, count: int) -> RunDirectory:
    """A run of so many images, whose pictures are noise: nothing is larger."""
    write_run(run)
    directory = RunDirectory(run)
    draw = np.random.default_rng(0)
    clusters = draw.integers(0, 10, count)
    few = directory.read_assignments()
    none = np.zeros(count, bool)
    directory.write_assignments(
        few._replace(
            paths=[f"folder/{row:06}.jpg" for row in range(count)], clusters=clusters, rejected=none, outliers=none,
            confidences=draw.uniform(size=count),
        )
    )  # fmt: skip
    rows = np.arange(24 * 10)
    photographs = draw.integers(0, 256, (MAPPED, 64, 64, 3), dtype=np.uint8)
    np.savez(run / "thumbnails.npz", images=photographs[: len(rows)], row=rows)
    np.savez(run / "map_thumbnails.npz", images=photographs[:MAPPED, :40, :40], row=np.arange(MAPPED))
    with directory.writing_embedding(directory.read_assignments().paths) as add:
        add((np.eye(10)[clusters] + draw.normal(size=(count, 10))).astype(np.float32))
    directory.write_near_duplicates(
        Duplicate(f"folder/{row:06}.jpg", "folder/000000.jpg") for row in range(1, count // 6)
    )
    change_result(run, n_images=count)
    return directory


@pytest.mark.parametrize("count", [3000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_the_page_of_many_images_is_no_larger_than_that_of_few(tmp_path: Path, count: int) -> None:
    assert write_report(many_images(tmp_path / "run", count)).stat().st_size < 5e6


def first_paint(page: Any) -> float:
    """Milliseconds until something was seen."""
    entries: list[float] = []
    while not entries:
        page.wait_for_timeout(50)
        entries = page.evaluate(
            "performance.getEntriesByName('first-contentful-paint').map(({startTime}) => startTime)"
        )
    return entries[0]


@pytest.mark.browser
def test_the_page_of_sixty_thousand_images_is_seen_soon(tmp_path: Path) -> None:
    path = write_report(many_images(tmp_path / "run", 60_000))
    painted = []
    with browser() as chromium:
        for _ in range(3):  # The quickest: others may be at work.
            page = chromium.new_page()
            page.goto(path.as_uri())
            page.locator("#map-points circle").first.hover(force=True)
            assert page.locator("#map-tip").is_visible()
            painted.append(first_paint(page))
            page.close()
    print(f"{min(painted):.0f} ms of {painted}, {path.stat().st_size:,} bytes")
    assert min(painted) < 2000
