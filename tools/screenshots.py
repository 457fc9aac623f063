"""The pictures of the front page and the guides, taken anew of a real run: `make screenshots`.

The handwritten digits are written out as files, clustered by the default preset, named as a person would who looks at
them, and then looked at in headless Chromium.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from dccm.commands.corrections import import_corrections
from dccm.report import write_report
from dccm.runs.directory import RunDirectory

PICTURES = Path(__file__).parent.parent / "docs" / "images"
LARGEST = 300_000
"""Bytes of a picture."""
FLAGS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking"]
SOFTWARE_WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def main() -> None:
    """Make the run unless one is given, and take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--run", type=Path, help="A run that this program left behind, instead of a new one.")
    parser.add_argument("--keep", type=Path, help="Leave the new run in this folder.")
    parser.add_argument("--output", type=Path, default=PICTURES, help="Folder of the pictures.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = asked.run or make_run(asked.keep or Path(folder))
        asked.output.mkdir(parents=True, exist_ok=True)
        for picture in take(run, asked.output):
            print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")
            if picture.stat().st_size > LARGEST:
                sys.exit(f"{picture} has more than {LARGEST:,} bytes.")


def make_run(folder: Path) -> Path:
    """Cluster the digits as files, and name the clusters by what most of their images show."""
    digits = load_digits()
    photos = folder / "digits"
    photos.mkdir(parents=True)
    for number, pixels in enumerate(digits.images):
        picture = Image.fromarray((pixels * 255 / 16).astype(np.uint8))
        picture.resize((64, 64), Image.Resampling.BICUBIC).save(photos / f"{number:04d}.png")
    run = folder / "clusters"
    words = ["cluster", str(photos), "-k", "10", "-o", str(run), "--encoder", "scratch", "--dataset", "digits"]
    subprocess.run([sys.executable, "-m", "dccm", *words, "--image-size", "8"], check=True)
    assigned = RunDirectory(run).read_assignments()
    words_of = ("zeros", "ones", "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines")
    rows = np.array([int(Path(path).stem) for path in assigned.paths])
    for cluster in range(10):
        shown = digits.target[rows[np.asarray(assigned.clusters) == cluster]]
        if len(shown):
            name = words_of[int(np.bincount(shown).argmax())]
            import_corrections(run, [json.dumps({"kind": "rename", "cluster": cluster, "name": name, "who": "me"})])
    write_report(RunDirectory(run))
    return run


def take(run: Path, output: Path) -> Iterator[Path]:
    """The gallery with clusters and with its map, and the report with its beginning and with its map."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or sys.exit("Needs chromium: make chromium.")
    with sync_playwright() as playwright, served(run) as address:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS + SOFTWARE_WEBGL)
        page = browser.new_page(viewport={"width": 1200, "height": 720})
        page.goto(address)
        page.wait_for_selector(".card img")
        yield shot(page, output / "clusters.png")
        circle_some(page)
        yield shot(page, output / "gallery.png")
        page.goto((run / "report.html").resolve().as_uri())
        yield shot(page, output / "report.png")
        page.set_viewport_size({"width": 1200, "height": 900})
        point_at_one(page)
        yield shot(page, output / "report_map.png")


def point_at_one(page: Any) -> None:
    """Show the map of the report, with the image of one of its points."""
    page.locator("#map").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('map').scrollIntoView()")
    page.locator("#map-points circle").nth(39).hover(force=True)


def circle_some(page: Any) -> None:
    """Draw a lasso around a part of the map."""
    page.keyboard.press("3")
    page.wait_for_selector(".map canvas")
    page.locator(".empty.over").wait_for(state="detached", timeout=120_000)
    page.get_by_text("t-SNE", exact=True).wait_for(timeout=600_000)
    page.wait_for_selector(".tile img")
    box = page.locator(".map canvas").bounding_box()
    page.get_by_role("button", name="Lasso", exact=True).click()
    corners = [(0.35, 0.3), (0.65, 0.3), (0.65, 0.55), (0.35, 0.55)]
    places = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=3)
    page.mouse.up()
    page.locator(".selection strong").wait_for()
    page.wait_for_timeout(200)
    page.wait_for_selector("canvas[data-drawn]")


def shot(page: Any, picture: Path) -> Path:
    """A picture of what is in view, once nothing is on its way any more."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    page.screenshot(path=str(picture))
    with Image.open(picture) as taken:
        taken.convert("RGB").save(picture, optimize=True)
    return picture


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of a gallery that ends with the block."""
    words = [sys.executable, "-m", "dccm", "serve", str(run), "--port", "0", "--tsne"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
