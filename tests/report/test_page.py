import ast
import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

import dccm.report
from dccm.errors import visible
from dccm.report import write_report
from dccm.report.pictures import image_uri
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import Again, Judgement, write_judgement
from tests.report.runs import HOSTILE_PATHS, Page, change_result, decoded, page_of, write_csv, write_run


@pytest.fixture(scope="module")
def digits_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(write_run(tmp_path_factory.mktemp("runs") / "digits"))


@pytest.mark.parametrize(
    "words",
    [
        "<title>digits: 1,797 images in 10 clusters</title>",
        "3 min 20 s",
        ">0.843</td>",
        "k-means on pixels",
        ">0.692</td>",
        "True labels were used for evaluation only",
        "1 of 10 clusters hold no image. Ask for fewer clusters.",
        "60 files were skipped; the first 50 are shown",
        "at most 3 (epoch 1)",
        "0.1.0",
        "entropy of cluster sizes",
        "information",
    ],
)
def test_page_says_what_the_run_directory_holds(digits_page: Page, words: str) -> None:
    assert words in digits_page.text


def test_a_warning_of_an_early_epoch_is_gone_when_it_no_longer_holds(digits_page: Page) -> None:
    assert "3 of 10 clusters hold no image." not in digits_page.text


def test_only_the_first_fifty_skipped_files_are_listed(digits_page: Page) -> None:
    assert "bad,49.png" in digits_page.text
    assert "bad,50.png" not in digits_page.text


def test_hostile_paths_are_shown_but_never_become_markup(digits_page: Page) -> None:
    assert not digits_page.all("script")
    assert not any("onerror" in attributes for _, attributes in digits_page.tags)
    shown = digits_page.titles()
    for path in HOSTILE_PATHS:
        assert f"{visible(path)}\nconfidence 1.000" in shown


def test_page_loads_nothing_from_outside(digits_page: Page) -> None:
    assert "http://" not in digits_page.text
    assert "https://" not in digits_page.text
    assert not re.search(r"@import|url\(", digits_page.text)
    assert all((image["src"] or "").startswith("data:image/") for image in digits_page.all("img"))
    links = [link["href"] or "" for tag in ("a", "link") for link in digits_page.all(tag)]
    assert all(link.startswith(("#", "data:")) for link in links)


def test_links_lead_to_places_on_the_page(digits_page: Page) -> None:
    places = [attributes["id"] for _, attributes in digits_page.tags if "id" in attributes]
    assert len(places) == len(set(places))
    assert all((link["href"] or "")[1:] in places for link in digits_page.all("a"))


def test_every_thumbnail_decodes_and_has_a_text(digits_page: Page) -> None:
    images = digits_page.all("img")
    assert len(images) == 9 * 24
    assert {decoded(image["src"]).size for image in images} == {(8, 8)}
    assert all(image["alt"] for image in images)


def test_thumbnails_of_a_cluster_come_most_confident_first(digits_page: Page) -> None:
    for card in digits_page.cards():
        confidences = [float(text) for text in re.findall(r"confidence (\d\.\d+)\" alt", card)]
        assert confidences == sorted(confidences, reverse=True)


def test_cards_come_largest_first_and_an_empty_cluster_says_so(digits_page: Page) -> None:
    cards = digits_page.cards()
    sizes = [int(found[1]) for card in cards if (found := re.search(r"<p>(\d+) image", card))]
    assert len(sizes) == 10
    assert sizes == sorted(sizes, reverse=True)
    assert ">Cluster 3</bdi></h3>" in cards[0]
    assert ">Cluster 9</bdi></h3>" in cards[-1]
    assert "This cluster holds no image." in cards[-1]


def test_every_chart_has_a_name_for_those_who_cannot_see_it(digits_page: Page) -> None:
    charts = [drawing for drawing in digits_page.all("svg") if drawing["class"] == "chart"]
    assert len(charts) == 4
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in charts)


def test_mean_confidence_of_a_cluster_counts_all_of_its_images(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    rows = [("a.png", 0, 0.5), ("b.png", 0, 1.0), ("c.png", 1, 0.25)]
    write_csv(run / "assignments.csv", [("path", "cluster", "confidence"), *rows])
    np.savez(run / "thumbnails.npz", images=np.zeros((1, 8, 8, 1), np.uint8), row=np.array([2]))
    change_result(run, n_images=3, n_clusters=2)
    first, second = page_of(run).cards()
    assert "mean confidence 0.75" in first
    assert "2 images · 66.7 %" in first
    assert "No thumbnails were kept" in first
    assert "mean confidence 0.25" in second


def test_a_single_epoch_is_told_in_words_and_draws_no_single_points(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path, epochs=1))
    assert not page.all("circle")
    assert "This run has one epoch, so there are no curves of its training: loss 0.698, graph 0.110" in page.text
    assert "linked pairs 0.106" in page.text


def test_an_empty_history_gives_a_page_without_curves_and_without_empty_frames(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path, epochs=0))
    assert "This run has no epochs" in page.text
    assert [chart["aria-label"] for chart in page.all("svg") if chart["class"] == "chart"] == [
        "Cluster sizes: 10 clusters of 0 to 363 images",
        "Confidence of the images: 1,797 images, median 0.89",
    ]
    assert len(page.all("figure")) == 2
    assert "Signs of collapse" not in page.text
    assert len(page.cards()) == 10


def test_a_history_of_losses_alone_has_no_frame_for_signs_of_collapse(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    lines = [json.dumps({"epoch": epoch, "passes": 1.0, "loss": 0.5}) for epoch in (1, 2)]
    (run / "history.jsonl").write_text("\n".join(lines))
    page = page_of(run)
    assert len(page.all("figure")) == 3
    assert "Signs of collapse" not in page.text
    assert "This run has no epochs" not in page.text


def test_a_loss_term_of_any_name_is_drawn_and_other_figures_are_not(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    record = {"epoch": 1, "passes": 1.0, "loss": 0.5, "<rotation>": 0.3, "note": "text", "broken": float("nan")}
    (run / "history.jsonl").write_text("\n".join(json.dumps(record | {"epoch": epoch}) for epoch in (1, 2)))
    legend = re.findall(r"</svg>([^<]+) <b>", page_of(run).text)
    assert legend == ["even share", "loss", "&lt;rotation&gt;"]


def test_a_run_without_labels_scores_or_skipped_files_still_gives_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    (run / "skipped.csv").unlink()
    cost = {"seconds": 0.0, "passes": 0, "peak_memory_mb": None}
    change_result(run, scores=None, baseline=None, dataset=None, warnings=[], cost=cost, versions={})
    text = page_of(run).text
    assert "<title>1,797 images in 10 clusters</title>" in text
    assert "No true labels were given" in text
    assert 'id="skipped"' not in text
    assert '<section class="warnings"' not in text


def test_a_method_without_confidence_still_gives_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    rows = [("a.png", 0, ""), ("b.png", 1, "")]
    write_csv(run / "assignments.csv", [("path", "cluster", "confidence"), *rows])
    np.savez(run / "thumbnails.npz", images=np.zeros((2, 8, 8, 1), np.uint8), row=np.array([1, 0]))
    change_result(run, n_images=2, n_clusters=2)
    page = page_of(run)
    assert "This method gives no confidence." in page.text
    assert "nan" not in page.text


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (2, "L"), (3, "RGB"), (4, "RGB"), (5, "RGB")])
def test_thumbnails_of_any_number_of_channels_are_shown(tmp_path: Path, channels: int, mode: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, (60, 12, 16, channels), dtype=np.uint8)
    page = page_of(write_run(tmp_path, images))
    first = decoded(page.all("img")[0]["src"])
    assert (first.mode, first.size) == (mode, (16, 12))


def test_small_images_are_kept_exactly_and_large_ones_shrunk() -> None:
    small = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(decoded(image_uri(small))), small)
    large = decoded(image_uri(np.zeros((300, 150, 3), np.uint8)))
    assert (large.format, large.size) == ("JPEG", (48, 96))


@pytest.mark.parametrize("side", [8, 32, 96])
def test_a_page_of_two_hundred_clusters_of_photographs_stays_small(tmp_path: Path, side: int) -> None:
    photograph = load_sample_image("china.jpg")
    corners = np.random.default_rng(0).integers(0, 427 - 96, (4800, 2))
    images = np.stack([photograph[y : y + 96, x : x + 96][:: 96 // side, :: 96 // side] for y, x in corners])
    run = write_run(tmp_path)
    rows = [(f"{row}.png", row % 200, 0.5) for row in range(4800)]
    write_csv(run / "assignments.csv", [("path", "cluster", "confidence"), *rows])
    np.savez(run / "thumbnails.npz", images=images, row=np.arange(4800))
    change_result(run, n_images=4800, n_clusters=200)
    assert write_report(RunDirectory(run)).stat().st_size < 10e6


def test_a_report_is_written_without_torch(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    code = "import sys; from dccm.report import write_report; from dccm.runs.directory import RunDirectory\n"
    code += f"write_report(RunDirectory({str(run)!r})); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_report_reads_runs_and_knows_nothing_of_methods_or_training() -> None:
    folder = Path(dccm.report.__file__).parent
    nodes = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    parts = {".".join(name.split(".")[:2]) for name in modules if name.startswith("dccm")}
    assert parts == {
        "dccm.arrays", "dccm.corrections", "dccm.data", "dccm.errors", "dccm.evaluation", "dccm.files", "dccm.grouping",
        "dccm.report", "dccm.runs",
    }  # fmt: skip


def test_a_reliability_diagram_and_outliers_are_there_only_where_they_are_known(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    plain = page_of(run).text
    assert "Reliability" not in plain
    assert 'id="outliers"' not in plain
    known: dict[str, Any] = {"temperature": 2.0, "agreement": 0.8, "mean_raw": 0.9, "mean": 0.8, "rejected": 7}
    known |= {"reject_below": 0.5, "outliers": 1}
    known |= {"scores": {"calibration_error": 0.123, "calibration_error_raw": 0.3, "acc_surest_80": 0.9}}
    bins = [[0.5, 0.4, 10], [0.9, 0.8, 90]]
    change_result(run, confidence=known | {"reliability": bins, "reliability_raw": bins})
    with (run / "assignments.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    first = int(np.load(run / "thumbnails.npz")["row"][0])
    wide = [(*row, row[1], int(number == first)) for number, row in enumerate(rows)]
    write_csv(run / "assignments.csv", [("path", "cluster", "confidence", "best", "outlier"), *wide])
    page = page_of(run).text
    assert "Reliability: calibration error 0.123" in page
    assert "7 images below 0.500 were rejected" in page
    assert "1 image is far from all others" in page
    assert page.split('class="strip"')[1].count("<img") >= 1


def test_a_run_that_was_judged_says_what_it_is_worth_and_what_that_cannot_say(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    change_result(run, warnings=[])
    page = page_of(run).text
    assert "These clusters were not judged yet." in page
    assert 'id="judgement"' not in page
    other = Again('<b>"another"</b>', 1, 1797, 0.9, 0.9, [0.9] * 10)
    write_judgement(run / "judgement.json", Judgement(9, 0.9, 0.9, 0.3, [], 9, 0.99, 0.98, [], [other]))
    page = page_of(run).text
    assert "The signs are good" in page
    assert page.count("good sign") == 3
    assert page.count("says little") == 1
    assert "&lt;b&gt;&#34;another&#34;&lt;/b&gt; (seed 1)" in page
