"""What people do in the browser, in a real one."""

import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

pytest.importorskip("uvicorn", reason="uvicorn comes with dccm[serve]")
from dccm.commands.cluster import cluster
from dccm.commands.corrections import export_corrections
from tests.gallery.chromium import AXE, WAIT, browser, tab
from tests.gallery.runs import HOSTILE, served

IMAGES, CLUSTERS = 360, 8
PORT = 8872


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over handwritten digits as files."""
    folder = tmp_path_factory.mktemp("digits")
    for number, pixels in enumerate(load_digits().images[:IMAGES]):
        image = Image.fromarray((pixels * 255 / 16).astype(np.uint8)).resize((48, 48))
        image.save(folder / f"{number:04d}.png")
    output = tmp_path_factory.mktemp("runs") / "run"
    cluster(folder, CLUSTERS, "kmeans", output=output, encoder="scratch", image_size=16)
    return output


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture
def run(finished: Path) -> Path:
    for path in finished.glob("corrections.sqlite*"):
        path.unlink()
    return finished


@pytest.fixture
def address(run: Path) -> Iterator[str]:
    with served(run, PORT) as (_, address):
        yield address


def cards(page: Any) -> Any:
    return page.locator(".card")


def names(page: Any) -> list[str]:
    return page.locator(".card .name").all_inner_texts()  # type: ignore[no-any-return]


def sizes(page: Any) -> list[int]:
    return [int(text) for text in page.locator(".card .size").all_inner_texts()]


def wait_for(page: Any, text: str) -> None:
    """Until what was done is said."""
    page.locator(".toast", has_text=text).wait_for()


def wait_count(locator: Any, count: int) -> None:
    deadline = time.monotonic() + WAIT / 1000
    while locator.count() != count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert locator.count() == count


def press_and_wait(page: Any, key: str) -> None:
    """Until what the key does is on the screen."""
    version = int(page.locator(".app").get_attribute("data-version"))
    page.keyboard.press(key)
    page.locator(f".app[data-version='{version + 1}']").wait_for()


def rename(page: Any, place: int, name: str) -> None:
    page.locator(".card input").nth(place).check()
    page.keyboard.press("r")
    page.get_by_label("Name", exact=True).fill(name)
    page.keyboard.press("Enter")
    wait_for(page, f"is now called {name}")
    page.keyboard.press("Escape")


def kinds(run: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in export_corrections(run)]


def test_a_cluster_is_named_two_are_merged_and_it_is_taken_back(run: Path, address: str, chromium: Any) -> None:
    with tab(chromium, address) as page:
        wait_count(cards(page), CLUSTERS)
        rename(page, 2, "threes")
        before = sizes(page)
        for place in (0, 2):
            page.locator(".card input").nth(place).check()
        page.get_by_role("button", name="Merge 2 clusters").click()
        wait_count(cards(page), CLUSTERS - 1)
        assert "threes" in names(page)
        assert before[0] + before[2] in sizes(page)
        page.keyboard.press("u")
        wait_count(cards(page), CLUSTERS)
        assert sizes(page) == before
    assert kinds(run) == ["rename", "merge", "undo"]


@pytest.mark.browser
def test_everything_at_once_and_nothing_lost(run: Path, address: str, chromium: Any) -> None:
    """Rename, merge three, split, lasso and move, undo ten, redo ten, reload, a second tab."""
    with tab(chromium, address) as page, tab(chromium, address) as other:
        wait_count(cards(page), CLUSTERS)
        for place in range(5):
            rename(page, place, f"name {place}")
        for place in (0, 1, 2):
            page.locator(".card input").nth(place).check()
        page.keyboard.press("j")
        wait_count(cards(page), CLUSTERS - 2)
        page.locator(".card input").nth(0).check()
        page.keyboard.press("s")
        page.get_by_role("button", name="3 parts").click()
        wait_count(cards(page), CLUSTERS)
        page.keyboard.press("Escape")

        moved = lasso_and_move(page)
        page.keyboard.press("1")
        wait_count(cards(page), CLUSTERS + 1)
        assert moved in sizes(page)
        rename(page, CLUSTERS, "last")
        rename(page, CLUSTERS - 1, "last but one")
        after = sizes(page), names(page)

        for _ in range(10):
            press_and_wait(page, "u")
        wait_count(cards(page), CLUSTERS)
        assert names(page) == [f"Cluster {number}" for number in range(CLUSTERS)]
        assert page.get_by_role("button", name="Undo").is_disabled()
        for _ in range(10):
            press_and_wait(page, "y")
        assert (sizes(page), names(page)) == after
        page.reload()
        wait_count(cards(page), CLUSTERS + 1)
        assert (sizes(page), names(page)) == after
        rename(page, 3, "seen by both")
        other.locator(".card .name", has_text="seen by both").wait_for(timeout=2000)
        assert (sizes(other), names(other)) == (sizes(page), names(page))
    assert kinds(run).count("undo") == kinds(run).count("redo") == 10


def lasso_and_move(page: Any) -> int:
    """Draw a line around the left half of the map, and move what is in it to a new cluster; how many that are."""
    page.keyboard.press("3")
    page.wait_for_selector(".map canvas")
    page.locator(".empty.over").wait_for(state="detached")
    page.wait_for_selector(".tile")
    box = page.locator(".map canvas").bounding_box()
    left, top, right, bottom = box["x"] + 2, box["y"] + 2, box["x"] + box["width"] / 2, box["y"] + box["height"] - 2
    page.get_by_role("button", name="Lasso", exact=True).click()
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom)):
        page.mouse.move(x, y, steps=3)
    page.mouse.up()
    text = page.locator(".selection strong").inner_text()
    count = int(re.sub(r"\D", "", text))
    assert 0 < count < IMAGES
    assert page.locator(".filters output").inner_text() == f"{count} images"  # The grid shows what the lasso holds.
    page.keyboard.press("m")
    page.get_by_role("combobox", name="Name of the cluster").fill("left")
    page.keyboard.press("Enter")
    wait_for(page, f"left made, with {count} images")
    return count


@pytest.mark.browser
def test_a_server_that_is_killed_in_the_middle_of_a_change_loses_nothing(run: Path, chromium: Any) -> None:
    with served(run, PORT) as (server, address), tab(chromium, address, quiet=False) as page:
        wait_count(cards(page), CLUSTERS)
        rename(page, 0, "before")
        page.locator(".card input").nth(1).check()
        page.keyboard.press("r")
        page.get_by_label("Name", exact=True).fill("during")
        page.keyboard.press("Enter")
        server.kill()
        server.wait()
        page.locator(".gone").wait_for()
        page.keyboard.press("Escape")
        page.locator(".card input").nth(2).check()
        page.keyboard.press("r")
        page.get_by_label("Name", exact=True).fill("while away")
        page.keyboard.press("Enter")
        page.locator(".gone", has_text="waits for it").wait_for()
        with served(run, PORT) as (_, again):
            assert again == address  # The token is the same: the page goes on by itself.
            page.locator(".card .name", has_text="while away").wait_for()
            page.locator(".gone").wait_for(state="detached")
            assert names(page)[:3] == ["before", "during", "while away"]
    said = [json.loads(line) for line in export_corrections(run)]
    assert sorted(change["name"] for change in said) == ["before", "during", "while away"]  # Each of them once.


@pytest.mark.browser
def test_the_keyboard_alone_reaches_and_does_everything(run: Path, address: str, chromium: Any) -> None:
    with tab(chromium, address) as page:
        wait_count(cards(page), CLUSTERS)
        for view in ("1", "2", "3"):
            page.keyboard.press(view)
            page.wait_for_selector(
                "canvas[data-drawn]" if view == "3" else ".card, .tile"
            )  # All can be pressed by now.
            page.wait_for_timeout(300)
            assert reached_by_tab(page) >= interactive(page), view
        page.keyboard.press("1")
        page.locator(".card .open").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("x")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("x")
        page.keyboard.press("j")
        wait_count(cards(page), CLUSTERS - 1)
        page.locator(".card .open").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".tile")
        page.locator(".grid").focus()
        page.keyboard.press("Space")
        for _ in range(3):
            page.keyboard.press("Shift+ArrowRight")
        assert page.locator(".selection strong").inner_text() == "4 selected"
        page.keyboard.press("m")
        page.keyboard.type("kept apart")
        page.keyboard.press("Enter")
        wait_for(page, "kept apart made, with 4 images")
        page.locator(".grid").focus()
        page.keyboard.press("Enter")
        page.locator("dialog.lightbox .near li").first.wait_for()
        page.keyboard.press("Escape")
        page.keyboard.press("Space")
        page.keyboard.press("o")
        wait_for(page, "marked as an outlier")
        page.keyboard.press("3")
        page.wait_for_selector(".tile")
        page.locator(".map canvas").focus()
        for key in ("+", "+", "ArrowLeft", "Enter"):
            page.keyboard.press(key)
        assert "selected" in page.locator(".selection strong").inner_text()
    assert kinds(run) == ["merge", "create", "mark"]


def interactive(page: Any) -> set[str]:
    """What can be pressed or filled in, and is not switched off."""
    shown = "[...document.querySelectorAll('button, input, select, canvas')].filter(e => !e.disabled && e.offsetParent)"
    return set(page.evaluate(f"() => {{ {WORDS} return {shown}.map(word) }}"))


WORDS = """const word = e => `${e.tagName} ${e.getAttribute('aria-label') ?? e.textContent} ${e.dataset.id ?? ''}`;"""


def reached_by_tab(page: Any) -> set[str]:
    page.evaluate("() => document.activeElement.blur()")
    found: set[str] = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        word = page.evaluate(f"() => {{ {WORDS} return word(document.activeElement) }}")
        if word in found and word.startswith("BUTTON Clusters"):
            break
        found.add(word)
    return found


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 768, 390])
def test_axe_finds_no_violation(address: str, chromium: Any, width: int, scheme: str) -> None:
    if not AXE.is_file():
        pytest.skip('axe-core is missing; get it by "npm ci" in frontend/')
    axe = AXE.read_text("utf-8")
    size = {"width": width, "height": 800}
    with tab(chromium, address, viewport=size, color_scheme=scheme) as page:
        for view in STATES:
            STATES[view](page)
            page.wait_for_timeout(400)
            page.evaluate(axe)
            found = page.evaluate("() => axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))")
            assert found == [], view
            wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, view
            page.keyboard.press("Escape")


def _press(*keys: str) -> Any:
    def act(page: Any) -> None:
        for key in keys:
            page.keyboard.press(key)

    return act


def _open_first(page: Any) -> None:
    page.keyboard.press("2")
    page.locator(".tile").first.dblclick()
    page.locator("dialog.lightbox .near li").first.wait_for()


def _choose(page: Any) -> None:
    page.locator(".tile").nth(1).click()
    page.keyboard.press("m")


STATES = {
    "clusters": lambda page: page.locator(".card input").nth(1).check(),
    "keys": _press("?"),
    "log": _press("h"),
    "images": _press("2"),
    "lightbox": _open_first,
    "move": _choose,
    "map": _press("3"),
    "nothing": lambda page: page.locator("#search").fill("no such thing"),
}


@pytest.mark.browser
def test_the_map_shows_all_points_wherever_it_is_moved(address: str, chromium: Any) -> None:
    with tab(chromium, address) as page:
        page.keyboard.press("3")
        page.wait_for_selector(f"canvas[data-drawn='{IMAGES}']")
        page.wait_for_timeout(200)
        whole = inked(page)
        page.locator(".map canvas").focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector(f"canvas[data-drawn='{IMAGES}']")
        page.wait_for_timeout(200)
        assert (inked(page) != whole).any()  # It has moved,
        page.keyboard.press("0")
        page.wait_for_selector(f"canvas[data-drawn='{IMAGES}']")
        page.wait_for_timeout(200)
        assert (inked(page) == whole).mean() > 0.999  # and comes back to the same.
        assert (whole > 0).sum() > 5 * IMAGES


def inked(page: Any) -> Any:
    """The map as numbers, without its rim, which shows where the focus is; the white ground is zero."""
    box = page.locator(".map canvas").bounding_box()
    shot = Image.open(io.BytesIO(page.screenshot(clip=box))).convert("L")
    return 255 - np.asarray(shot, np.int16)[6:-6, 6:-6]


@pytest.mark.browser
def test_names_with_markup_are_shown_as_they_are(address: str, chromium: Any) -> None:
    with tab(chromium, address) as page:
        page.on("dialog", lambda dialog: pytest.fail("a script ran"))
        wait_count(cards(page), CLUSTERS)
        rename(page, 0, HOSTILE)
        assert names(page)[0] == HOSTILE
        assert page.locator("img[onerror]").count() == 0
        page.keyboard.press("h")
        page.locator(".log li").first.wait_for()
        assert HOSTILE in page.locator(".log li").first.inner_text()


@pytest.mark.browser
def test_an_image_that_is_dropped_in_finds_itself(finished: Path, address: str, chromium: Any) -> None:
    source = Path(json.loads((finished / "source.json").read_text())["place"])
    with tab(chromium, address) as page:
        page.keyboard.press("2")
        page.locator("input[type=file]").set_input_files(source / "0017.png")
        wait_for(page, "Most like 0017.png first")
        assert page.locator(".tile").first.get_attribute("id") == "tile-17"


@pytest.mark.browser
def test_what_is_searched_for_survives_a_reload(address: str, chromium: Any) -> None:
    with tab(chromium, address) as page:
        page.keyboard.press("2")
        page.keyboard.press("/")
        page.keyboard.type("001")
        page.locator(".filters output", has_text="11 images").wait_for()
        page.reload()
        page.locator(".filters output", has_text="11 images").wait_for()
        assert page.locator("#search").input_value() == "001"


@pytest.mark.browser
def test_back_leads_from_a_cluster_to_all_of_them(address: str, chromium: Any) -> None:
    with tab(chromium, address) as page:
        cards(page).nth(1).locator(".open").click()
        page.wait_for_selector(".tile")
        page.go_back()
        wait_count(cards(page), CLUSTERS)
        page.go_forward()
        page.wait_for_selector(".tile")
        assert page.get_by_label("Cluster", exact=True).input_value() == "1"


def test_the_built_page_is_small() -> None:
    static = Path(__file__).parents[2] / "src" / "dccm" / "gallery" / "static"
    assert sum(path.stat().st_size for path in static.rglob("*")) < 600_000
