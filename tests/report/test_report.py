import ast
import base64
import csv
import errno
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits, load_sample_image

import dccm.report
from dccm.errors import UserError
from dccm.report import plots, write_report
from dccm.report.page import image_uri

HOSTILE_PATHS = [
    "<script>alert(1)</script>.png",
    'a "quoted", comma.png',
    "two\nlines.png",
    "\U0001f600 smile.png",
    "' onerror='alert(2).png",
]


class Page(HTMLParser):
    """The parts of a page that the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def titles(self) -> list[str]:
        return [image["title"] or "" for image in self.all("img")]

    def cards(self) -> list[str]:
        return self.text.split('<article class="card"')[1:]


def epoch_record(epoch: int, epochs: int) -> dict[str, Any]:
    done = epoch / epochs
    return {
        "epoch": epoch,
        "passes": 2.0 * epoch,
        "loss": 2.2 * np.exp(-2 * done) + 0.4,
        "graph": 0.6 * np.exp(-3 * done) + 0.08,
        "label": 1.1 * np.exp(-2 * done) + 0.2,
        "information": 0.5 * np.exp(-1 * done) + 0.12,
        "cluster_sizes": [180] * 10,
        "dead_clusters": max(0, 4 - epoch),
        "entropy": 1 - 0.5 * np.exp(-5 * done),
        "confident_share": 0.9 * done**0.5,
        "linked_share": 0.35 * np.exp(-4 * done) + 0.1,
        "warnings": [] if epoch > 4 else [f"{4 - epoch} of 10 clusters hold no image."],
    }


def write_csv(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_thumbnails(run: Path, images: np.ndarray, clusters: np.ndarray, confidences: np.ndarray) -> None:
    """At most 24 of each cluster, the surest ones, in an order that says nothing."""
    order = np.argsort(-confidences)
    kept = [row for k in range(int(clusters.max()) + 1) for row in [i for i in order if clusters[i] == k][:24]]
    rows = np.random.default_rng(1).permutation(kept)
    np.savez(run / "thumbnails.npz", images=images[rows], row=rows)


def write_run(run: Path, images: np.ndarray | None = None, epochs: int = 30) -> Path:
    """A run directory over the handwritten digits: cluster 9 is empty, its images went to cluster 3."""
    digits = load_digits()
    generator = np.random.default_rng(0)
    if images is None:
        images = (digits.images[..., None] * 255 / 16).astype(np.uint8)
    clusters = np.where(digits.target == 9, 3, digits.target)[: len(images)]
    confidences = generator.beta(6, 1, len(images)).round(4)
    paths = [f"digits/{number:04d}.png" for number in range(len(images))]
    for row, path in enumerate(HOSTILE_PATHS):
        paths[row], confidences[row] = path, 0.9999
    run.mkdir(parents=True, exist_ok=True)
    write_csv(run / "assignments.csv", [("path", "cluster", "confidence"), *zip(paths, clusters, confidences)])
    write_thumbnails(run, images, clusters, confidences)
    write_csv(run / "skipped.csv", [("path", "reason"), *((f"bad,{i}.png", "cut short") for i in range(60))])
    history = [json.dumps(epoch_record(epoch, epochs)) for epoch in range(1, epochs + 1)]
    (run / "history.jsonl").write_text("".join(f"{line}\n" for line in history))
    (run / "result.json").write_text(json.dumps(result_of(len(images))))
    return run


def result_of(n_images: int) -> dict[str, Any]:
    return {
        "method": "dccm",
        "preset": "digits",
        "dataset": "digits",
        "n_images": n_images,
        "n_clusters": 10,
        "seed": 0,
        "scores": {"acc": 0.8431, "nmi": 0.801, "ari": 0.745},
        "baseline": {"name": "k-means on pixels", "scores": {"acc": 0.6917, "nmi": 0.672, "ari": 0.558}},
        "versions": {"dccm": "0.1.0", "python": "3.11.7"},
        "cost": {"seconds": 200.4, "peak_memory_mb": 812.5, "passes": 60.0},
        "warnings": ["1 of 10 clusters hold no image. Ask for fewer clusters."],
    }


def change_result(run: Path, **changes: object) -> None:
    path = run / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def page_of(run: Path) -> Page:
    return Page(write_report(run).read_text("utf-8"))


def decoded(uri: str | None) -> Image.Image:
    assert uri is not None
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",", 1)[1])))


@pytest.fixture(scope="module")
def digits_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(write_run(tmp_path_factory.mktemp("runs") / "digits"))


@pytest.mark.parametrize(
    "words",
    [
        "<title>digits: 1,797 images in 10 clusters</title>",
        "3 min 20 s",
        "<td>0.843</td>",
        "k-means on pixels",
        "<td>0.692</td>",
        "True labels were used for evaluation only",
        "1 of 10 clusters hold no image. Ask for fewer clusters.",
        "60 files were not clustered; the first 50 are shown",
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
        assert f"{path}\nconfidence 1.000" in shown


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
    assert "Cluster 3</h3>" in cards[0]
    assert "Cluster 9</h3>" in cards[-1]
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


def test_a_single_epoch_shows_points(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path, epochs=1))
    assert len(page.all("circle")) == 4 + 3


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
    (run / "history.jsonl").write_text(json.dumps({"epoch": 1, "passes": 1.0, "loss": 0.5}) + "\n")
    page = page_of(run)
    assert len(page.all("figure")) == 3
    assert "Signs of collapse" not in page.text
    assert "This run has no epochs" not in page.text


def test_a_loss_term_of_any_name_is_drawn_and_other_figures_are_not(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    record = {"epoch": 1, "passes": 1.0, "loss": 0.5, "<rotation>": 0.3, "note": "text", "broken": float("nan")}
    (run / "history.jsonl").write_text(json.dumps(record) + "\n")
    legend = re.findall(r"</svg>([^<]+) <b>", page_of(run).text)
    assert legend == ["even share", "loss", "&lt;rotation&gt;"]


def test_a_run_without_labels_scores_or_skipped_files_still_gives_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    (run / "skipped.csv").unlink()
    change_result(run, scores=None, baseline=None, dataset=None, preset=None, warnings=[], cost=None, versions={})
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
    change_result(run, n_images=2)
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
    assert write_report(run).stat().st_size < 10e6


@pytest.mark.parametrize("name", ["result.json", "history.jsonl", "assignments.csv", "thumbnails.npz"])
def test_a_missing_file_is_named_with_the_way_out(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path)
    (run / name).unlink()
    with pytest.raises(UserError) as caught:
        write_report(run)
    assert str(caught.value) == f'There is no {name} in {run}; "dccm cluster" writes a run directory.'


def test_a_missing_run_directory_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r'There is no run directory .*nowhere; "dccm cluster" writes one'):
        write_report(tmp_path / "nowhere")


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def drop_last_line(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def pickle_inside(path: Path) -> None:
    np.savez(path, images=np.array([{}], dtype=object), row=np.array([0]))


def float_images(path: Path) -> None:
    np.savez(path, images=np.zeros((1, 8, 8, 1)), row=np.array([0]))


def damage_compressed(path: Path) -> None:
    np.savez_compressed(path, images=np.zeros((90, 8, 8, 1), np.uint8), row=np.arange(90))
    content = bytearray(path.read_bytes())
    content[60:90] = b"\xff" * 30
    path.write_bytes(content)


def row_too_far(path: Path) -> None:
    np.savez(path, images=np.zeros((1, 8, 8, 1), np.uint8), row=np.array([1797]))


@pytest.mark.parametrize(
    ("name", "harm", "reason"),
    [
        ("result.json", cut_short, "is broken"),
        ("result.json", lambda path: path.write_text("[]"), "not a JSON object"),
        ("result.json", lambda path: path.write_text('{"n_images": "many"}'), "n_images must be a whole number"),
        ("result.json", lambda path: change_result(path.parent, baseline={"scores": [1]}), "the baseline's scores"),
        ("result.json", lambda path: change_result(path.parent, warnings="one"), "warnings must be a list"),
        ("history.jsonl", cut_short, "is broken"),
        ("history.jsonl", lambda path: path.write_text('{"loss": 1.0}\n'), "record 1 has no epoch"),
        ("assignments.csv", drop_last_line, "1796 images, but result.json counts 1797"),
        ("assignments.csv", lambda path: path.write_text("name,group\n"), "first line is not path,cluster,confidence"),
        ("assignments.csv", lambda path: path.write_text("path,cluster,confidence\na\n"), "exactly 3 values"),
        ("assignments.csv", lambda path: path.write_text(path.read_text().replace(",3,", ",10,")), "outside 0 to 9"),
        ("thumbnails.npz", cut_short, "is broken"),
        ("thumbnails.npz", lambda path: path.write_bytes(b""), "is broken"),
        ("thumbnails.npz", pickle_inside, "is broken"),
        ("thumbnails.npz", damage_compressed, "is broken"),
        ("thumbnails.npz", float_images, "images must be uint8"),
        ("thumbnails.npz", row_too_far, "a row that assignments.csv does not have"),
        ("skipped.csv", lambda path: path.write_text("what\n"), "first line is not path,reason"),
    ],
)
def test_a_broken_file_is_named_with_the_way_out(
    tmp_path: Path, name: str, harm: Callable[[Path], object], reason: str
) -> None:
    run = write_run(tmp_path)
    harm(run / name)
    with pytest.raises(UserError) as caught:
        write_report(run)
    message = str(caught.value)
    assert message.startswith(f"{run / name} is broken (")
    assert reason in message
    assert message.endswith('write the run directory anew with "dccm cluster".')
    assert not (run / "report.html").exists()


def test_a_full_disk_leaves_the_old_page_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path)
    (run / "report.html").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"^No room on disk to write .*report\.html; .*Free some space"):
        write_report(run)
    assert (run / "report.html").read_text() == "old"
    assert not (run / "report.html.partial").exists()


def test_report_imports_nothing_of_the_package_but_errors_files_names_and_itself() -> None:
    folder = Path(dccm.report.__file__).parent
    nodes = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    own = {"dccm.report", "dccm.report.page", "dccm.report.run_files"}
    above = {"dccm.errors", "dccm.files", "dccm.data.names"}
    assert {name for name in modules if name.startswith("dccm")} == own | above
    assert not any(name.startswith("torch") for name in modules)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 2100, ["0", "500", "1,000", "1,500", "2,000", "2,500"]),
        (-0.03, 0.04, ["-0.04", "-0.02", "0.00", "0.02", "0.04"]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low: float, high: float, expected: list[str]) -> None:
    assert [tick.text for tick in plots.ticks(low, high)] == expected


@pytest.mark.parametrize("value", [0.0, 0.7, -3.0, 1e-12, 1e12])
def test_ticks_of_a_constant_stand_on_both_sides_of_it(value: float) -> None:
    found = [tick.value for tick in plots.ticks(value, value)]
    assert found[0] <= value <= found[-1]
    assert found[0] < found[-1]


def test_counts_have_whole_ticks() -> None:
    assert [tick.text for tick in plots.ticks(0, 2, whole=True)] == ["0", "1", "2"]


def test_a_curve_is_broken_where_a_value_is_missing() -> None:
    chart = plots.line_chart({"loss": [3.0, 2.0, float("nan"), 1.0]}, [1, 2, 3, 4], title="Loss", y_label="Loss")
    path = re.search(r'<path d="([^"]*)"', chart)
    assert path is not None
    assert re.sub(r"[^ML]", "", path[1]) == "MLM"
    assert chart.count("<circle") == 3


def test_a_chart_of_shares_always_reaches_from_zero_to_one() -> None:
    chart = plots.line_chart({"linked": [0.4, 0.5]}, [1, 2], title="Links", y_label="Share", at_least=(0, 1))
    assert re.findall(r'text-anchor="end">([^<]+)', chart) == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]


def test_a_long_history_is_a_line_without_markers_except_for_lone_points() -> None:
    values = [1.0] * 98 + [float("nan"), 1.0]
    chart = plots.line_chart({"loss": values}, list(range(100)), title="Loss", y_label="Loss")
    assert chart.count("<circle") == 1


def test_histogram_has_twenty_bins_and_takes_in_both_ends() -> None:
    chart = plots.histogram([0.0, 0.5, 1.0, float("nan")], title="Confidence")
    assert chart.count("<rect") == 20
    assert "0.00–0.05: 1 image<" in chart
    assert "0.95–1.00: 1 image<" in chart
