import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from PIL import Image

from dccm.errors import UserError
from dccm.experiments.figure import COLUMN_WIDTH, Figure, class_colours
from dccm.experiments.followed import kept
from dccm.experiments.maps import flat_map
from dccm.experiments.request import Request
from dccm.experiments.targets import find_target
from dccm.experiments.targets.figure1c import take_curve
from dccm.experiments.targets.figure3 import take_final_map, take_map
from dccm.experiments.targets.figure5 import CHOSEN, THRESHOLDS, take_graphs
from dccm.experiments.targets.figure6a import shares, take_largest
from dccm.experiments.targets.figure6b import runs
from tests.experiments.results_of import finish_all, images_with, opened, run_with

FIGURES = ("figure1c", "figure3", "figure4", "figure5", "figure6a", "figure6b")
DATASETS = ("cifar10", "digits")
"""One of the paper, one that it does not know."""
REQUEST = Request(seeds=(0, 1), datasets=DATASETS, budget="passes:3")
EPOCHS = (0.0, 1.0, 2.5)
CLASSES = [str(number % 10) for number in range(60)]
random = np.random.default_rng(0)
STAGES = [
    {"name": name, "epoch": epoch, "x": random.normal(size=60).tolist(), "y": random.normal(size=60).tolist()}
    for name, epoch in zip(("initial", "middle", "final"), EPOCHS)
]
FOUND: dict[str, Any] = {
    "curve": {"epoch": EPOCHS, "acc": [0.1, 0.2, 0.25], "nmi": [0.0, 0.1, 0.15]},
    "map": {"tool": "openTSNE", "classes": CLASSES, "stages": STAGES},
    "final-map": {"tool": "openTSNE", "classes": CLASSES, "stages": STAGES[2:]},
    "probe": {"conv": 0.61, "y": 0.52, "train_images": 50, "test_images": 10},
    "graphs": {
        "epoch": EPOCHS,
        "precision": [np.linspace(0.1, high, len(THRESHOLDS)).tolist() for high in (0.3, 0.6, 1)],
        "recall": [np.linspace(1, low, len(THRESHOLDS)).tolist() for low in (0.1, 0.2, 0.4)],
    },
    "largest": {"initial": [0.5, 0.3, 0.1, 0.1, 0, 0, 0, 0, 0], "final": [0, 0, 0, 0.1, 0, 0, 0.1, 0.1, 0.7]},
}


def made(name: str, folder: Path, request: Request = REQUEST) -> Figure:
    """A figure of runs that all found the same."""
    target, results = find_target(name), opened(folder)
    finish_all(results, target, request, FOUND, lambda number: {"nmi": 0.3, "acc": 0.4 + 0.01 * number, "ari": 0.2})
    figure = target.make(request, results)
    assert isinstance(figure, Figure)
    return figure


@pytest.fixture(params=FIGURES)
def figure(request: pytest.FixtureRequest, tmp_path: Path) -> Figure:
    return made(request.param, tmp_path / "results")


# Every figure ---------------------------------------------------------------------------------------------------------


def test_each_has_three_pictures_and_its_data_and_they_are_the_same_to_the_byte(figure: Figure, tmp_path: Path) -> None:
    paths = figure.save(tmp_path, "figure")
    assert [path.suffix for path in paths] == [".svg", ".pdf", ".png", ".csv"]
    svg, pdf, png, table = (path.read_bytes() for path in paths)
    assert figure.picture("svg", "figure") == svg
    assert figure.picture("pdf", "figure") == pdf
    if not figure.title.startswith("Figure 3"):  # It takes seconds.
        assert figure.picture("png", "figure") == png
    assert b"dc:date" not in svg
    assert b"CreationDate" not in pdf
    assert Image.open(paths[2]).size[0] == round(300 * COLUMN_WIDTH)
    assert max(map(len, (svg, pdf, png, table))) < 500_000
    lines = table.decode().splitlines()
    assert lines[0] == ",".join(figure.columns)
    assert len(lines) == 1 + len(figure.rows) > 5


def drawn(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canvas]:
    """The canvas as it was when it was saved, in the style of figures."""
    canvases: list[Canvas] = []
    saved = Canvas.savefig

    def note(self: Canvas, *arguments: Any, **named: Any) -> None:
        saved(self, *arguments, **named)
        canvases.append(self)

    monkeypatch.setattr(Canvas, "savefig", note)
    figure.picture("png")
    return iter(canvases)


def test_nothing_is_cut_off_and_every_word_can_be_read_in_print(
    figure: Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    (canvas,) = drawn(figure, monkeypatch)
    box = canvas.get_tightbbox()
    assert min(box.x0, box.y0) >= -0.01
    assert box.x1 <= COLUMN_WIDTH + 0.01
    assert box.y1 <= figure.height + 0.01
    words = [text for text in canvas.findobj(Text) if isinstance(text, Text) and text.get_text()]
    assert min(float(text.get_fontsize()) for text in words) >= 6
    assert {text.get_text() for text in words} >= set(DATASETS) or figure.title.startswith("Figure 3")


def test_labels_of_ticks_do_not_overlap(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> None:
    (canvas,) = drawn(figure, monkeypatch)
    canvas.draw_without_rendering()
    for axes in canvas.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [label.get_window_extent() for label in labels if label.get_text() and label.get_visible()]
            assert not [1 for one, other in pairwise(boxes) if one.overlaps(other)]


def test_it_stands_in_a_page_by_itself_with_words_for_those_who_cannot_see_it(figure: Figure) -> None:
    page = figure.html()
    assert page.startswith('<svg role="img" aria-label="Figure')
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "<metadata>" not in page
    assert figure.caption in figure.text()
    assert all(finding in figure.text() for finding in figure.findings)
    assert "passes:3" in figure.caption


@pytest.mark.parametrize("name", FIGURES)
def test_without_any_finished_run_there_is_a_figure_that_says_so(name: str, tmp_path: Path) -> None:
    figure = find_target(name).make(REQUEST, opened(tmp_path / "results"))
    assert [path.exists() for path in figure.save(tmp_path, name)] == [True] * 4
    assert (tmp_path / f"{name}.csv").read_text().count("\n") == 1


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = made("figure6b", tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"Figures need matplotlib\. Get it with: pip install 'dccm\[figures\]'"):
        figure.picture("svg")


def test_the_style_of_the_user_is_not_taken_and_not_changed(tmp_path: Path) -> None:
    import matplotlib

    figure = made("figure6b", tmp_path)
    plain = figure.picture("svg")
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        assert figure.picture("svg") == plain
        assert matplotlib.rcParams["font.size"] == 20


def test_figures_look_into_the_same_runs() -> None:
    keys = {name: {need.spec.key for need in find_target(name).needs(REQUEST)} for name in FIGURES}
    dccm = {spec.key for dataset in DATASETS for spec in REQUEST.over_seeds("dccm", dataset)}
    assert keys["figure5"] == keys["figure6a"] == dccm
    assert dccm <= keys["figure1c"]
    assert dccm <= keys["figure6b"]
    assert keys["figure3"] <= keys["figure1c"]
    for table in ("table2", "table3", "table5"):
        assert dccm <= {need.spec.key for need in find_target(table).needs(REQUEST)}


def test_only_runs_that_figures_look_into_keep_predictions() -> None:
    assert dict(REQUEST.spec("dac", "digits").settings) == {"milestones": 10}
    for other in (
        REQUEST.spec("dec", "digits"),
        REQUEST.spec("dccm", "digits", split="train"),
        REQUEST.spec("dccm", "digits", settings={"label_threshold": 0.5}),
        Request(settings=(("milestones", 0),)).spec("dccm", "digits"),
    ):
        assert "milestones" not in dict(other.settings)


def test_only_what_was_asked_for_is_needed() -> None:
    request = Request(datasets=("digits",), methods=("dac",))
    needed = {name: [need.spec.method for need in find_target(name).needs(request)] for name in FIGURES}
    assert needed == {name: ["dac"] if name in ("figure1c", "figure3") else [] for name in FIGURES}


# What is measured -----------------------------------------------------------------------------------------------------


def test_shares_worked_by_hand() -> None:
    found = shares(np.array([0.05, 0.1, 0.19, 0.2, 0.75, 0.9, 1.0, 1.0]))
    assert found == [3 / 8, 1 / 8, 0, 0, 0, 0, 1 / 8, 0, 3 / 8]


def test_largest_probabilities_are_those_of_the_first_and_of_the_last_moment(tmp_path: Path) -> None:
    unsure, middle, sure = (np.tile([top, 1 - top], (4, 1)) for top in (0.55, 0.75, 0.95))
    found = take_largest(run_with(tmp_path / "run", [unsure, middle, sure]), images_with([0, 1, 0, 1]))
    assert found == {"initial": [0, 0, 0, 0, 1, 0, 0, 0, 0], "final": [0, 0, 0, 0, 0, 0, 0, 0, 1]}


def test_a_curve_worked_by_hand(tmp_path: Path) -> None:
    labels = [0, 0, 1, 1]
    halves, swapped = np.eye(2)[[0, 1, 0, 1]], np.eye(2)[[1, 1, 0, 0]]
    found = take_curve(run_with(tmp_path / "run", [halves, swapped]), images_with(labels))
    assert found["epoch"] == [0, 1]
    assert found["acc"] == [0.5, 1]
    assert found["nmi"] == pytest.approx([0, 1])


def test_graphs_of_sure_and_of_equal_predictions(tmp_path: Path) -> None:
    labels = np.arange(200) % 4
    equal, true = np.full((200, 4), 0.25), np.eye(4)[labels]
    found = take_graphs(run_with(tmp_path / "run", [equal, true]), images_with(labels))
    assert found["epoch"] == [0, 1]
    for precision, recall in zip(found["precision"][0], found["recall"][0]):
        assert precision == pytest.approx(0.25, abs=0.01)
        assert recall == 1
    above_zero = slice(1, None)
    assert set(found["precision"][1][above_zero]) == set(found["recall"][1][above_zero]) == {1}
    assert CHOSEN in THRESHOLDS


def test_graphs_are_of_large_batches_and_of_a_few_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def note(labels: np.ndarray, graph: np.ndarray) -> tuple[float, float]:
        sizes.append(graph.shape)
        return 0.5, 0.5

    monkeypatch.setattr("dccm.experiments.targets.figure5.graph_bcubed", note)
    equal = np.full((330, 4), 0.25)
    found = take_graphs(run_with(tmp_path / "run", [equal] * 11), images_with(np.zeros(330, int)))
    assert found["epoch"] == [0, 2, 5, 8, 10]
    assert set(sizes) == {(110, 110)}
    assert len(sizes) == 5 * 3 * len(THRESHOLDS)


def test_maps_are_of_the_same_images_at_three_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.experiments.targets.figure3.POINTS", 40)
    run, images = run_with(tmp_path / "run", [np.eye(3)[np.arange(60) % 3]] * 5), images_with(np.arange(60) % 3)
    found = take_map(run, images)
    assert [(stage["name"], stage["epoch"]) for stage in found["stages"]] == [
        ("initial", 0),
        ("middle", 2),
        ("final", 4),
    ]
    assert {len(stage[axis]) for stage in found["stages"] for axis in "xy"} == {40} == {len(found["classes"])}
    assert take_map(run, images) == found
    last = take_final_map(run, images)
    assert last["stages"] == found["stages"][2:]
    assert last["classes"] == found["classes"]


def test_a_run_too_short_for_a_middle_has_two_maps(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", [np.eye(3)[np.arange(60) % 3]] * 2)
    assert [stage["name"] for stage in take_map(run, images_with(np.arange(60) % 3))["stages"]] == ["initial", "final"]


@pytest.mark.parametrize("tool", ["openTSNE", "scikit-learn"])
def test_neighbours_stay_neighbours_on_the_plane(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool == "scikit-learn":
        monkeypatch.setitem(sys.modules, "openTSNE", None)
    else:
        pytest.importorskip("openTSNE")
    groups = np.arange(60) % 2
    features = (np.random.default_rng(0).normal(size=(60, 5)) + 20 * groups[:, None]).astype(np.float32)
    found = flat_map(features)
    assert found.tool == tool
    assert found.places.shape == (60, 2)
    distance = np.linalg.norm(found.places[:, None] - found.places[None], axis=2) + 1e9 * np.eye(60)
    assert (groups[distance.argmin(axis=1)] == groups).all()


def test_what_was_not_kept_or_is_of_other_images_is_named(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", [np.eye(2)])
    with pytest.raises(UserError, match=r"run is of 2 images, and now there are 3\. Give the same ones"):
        kept(run, images_with([0, 1, 0]))
    for path in run.milestones.iterdir():
        path.unlink()
    with pytest.raises(UserError, match=r"has kept no predictions\. Make the run anew with milestones = 10"):
        kept(run, images_with([0, 1]))


# What is shown --------------------------------------------------------------------------------------------------------


def test_numbers_of_the_paper_stand_beside_ours(tmp_path: Path) -> None:
    figures = {name: made(name, tmp_path / name, Request()) for name in FIGURES}
    assert "DCCM on cifar10: ACC 0.250 (paper: 0.623), epoch 2.5" in figures["figure1c"].findings
    assert "DAC on cifar10: ACC 0.250 (paper: 0.522), epoch 2.5" in figures["figure1c"].findings
    assert "DCCM on cifar10, conv: 0.610 (paper: 0.811)" in figures["figure4"].findings
    assert "cifar10, epoch 2.5, threshold 0.95: precision" in figures["figure5"].text()
    assert "cifar10, share above 0.7: initial 0.000 (paper: <0.10), final 0.900" in figures["figure6a"].findings
    assert "cifar10, share above 0.9: final 0.700 (paper: ~0.80), initial 0.000" in figures["figure6a"].findings
    assert "cifar10: ACC 0.440 (paper: 0.623) at 0.9" in figures["figure6b"].findings
    assert "cifar10: ACC 0.400 at 0.5" in figures["figure6b"].findings


def test_other_data_sets_have_no_numbers_of_the_paper(tmp_path: Path) -> None:
    for name in FIGURES:
        assert "paper:" not in "".join(made(name, tmp_path / name, Request(datasets=("digits",))).findings)


def test_means_and_deviations_are_over_seeds(tmp_path: Path) -> None:
    request, results = Request(seeds=(0, 1), datasets=("digits",)), opened(tmp_path)
    target = find_target("figure6b")
    finish_all(results, target, request, {}, lambda number: {"nmi": 0.0, "acc": 0.2 * (number % 2), "ari": 0.0})
    figure = target.make(request, results)
    assert isinstance(figure, Figure)
    rows = [dict(zip(figure.columns, row)) for row in figure.rows]
    acc = [row for row in rows if row["score"] == "acc"]
    assert [row["threshold"] for row in acc] == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    assert {(round(row["value"], 9), round(row["deviation"], 6), row["runs"]) for row in acc} == {(0.1, 0.141421, 2)}


def test_a_curve_of_a_run_by_the_clock_is_read_between_its_points(tmp_path: Path) -> None:
    request, results, target = Request(seeds=(0, 1), datasets=("digits",)), opened(tmp_path), find_target("figure1c")
    finish_all(results, target, request, FOUND)
    slow = request.over_seeds("dccm", "digits")[1]
    results.note_measure(slow, "curve", {"epoch": [0.0, 2.0], "acc": [0.1, 0.5], "nmi": [0.0, 0.0]})
    figure = target.make(request, results)
    assert isinstance(figure, Figure)
    rows = [dict(zip(figure.columns, row)) for row in figure.rows if row[1] == "DCCM"]
    assert [row["acc"] for row in rows] == pytest.approx([0.1, (0.2 + 0.3) / 2, (0.25 + 0.5) / 2])


def test_the_paper_threshold_is_the_run_of_the_other_figures() -> None:
    assert runs(REQUEST, "digits", 0.9) == REQUEST.over_seeds("dccm", "digits")
    assert dict(runs(REQUEST, "digits", 0.5)[0].settings) == {"label_threshold": 0.5}


def test_many_classes_have_a_colour_each() -> None:
    for count in (2, 10, 20, 200):
        colours = class_colours(map(str, range(count)))
        assert list(colours) == [str(number) for number in range(count)]
        assert len({tuple(colour) for colour in colours.values()}) == count
    assert list(class_colours(["dog", "cat", "dog"])) == ["cat", "dog"]
