"""How quick the gallery is: first view, frames while scrolling and panning, searches, memory of the server.

    python -m benchmarks.gallery FOLDER [--images 60000 1000000] [--rounds 3]

Makes runs of generated images in FOLDER, serves each, and looks at it in headless Chromium, which has to draw WebGL by
the processor (SwiftShader). A frame is the time between two calls of `requestAnimationFrame`; the longest one of a page
where nothing moves says what the machine's other work costs. `--json` writes the figures of each round.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

from dccm.data.names import Names
from dccm.runs.contents import Assignments, StoredSource
from dccm.runs.directory import RunDirectory

CLUSTERS, FEATURES = 10, 256
DIFFERENT = 1000
"""Images that differ; the others are the same again."""
FLAGS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking"]
SOFTWARE_WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
WATCH = """
    window.watching = () => {
        const gaps = [];
        let last = performance.now(), on = true;
        const step = () => {
            const now = performance.now();
            gaps.push(now - last);
            last = now;
            if (on) requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
        window.watched = () => { on = false; return gaps.slice(1); };
    };
    const seen = () => {
        const images = [...document.querySelectorAll(".card img")];
        const inside = images.filter(image => image.getBoundingClientRect().top < innerHeight);
        const there = inside.length && inside.every(image => image.complete && image.naturalWidth > 1);
        if (there) requestAnimationFrame(() => { window.seen ??= performance.now(); });
        else setTimeout(seen, 5);
    };
    if (window.top === window) seen();
"""
"""Gathers the times of frames, and notes when all images in the window are there."""


def make_run(folder: Path, count: int) -> Path:
    """A run directory of generated images, with its prepared images in a cache beside it."""
    directory, generator = RunDirectory(folder / f"run-{count}"), np.random.default_rng(0)
    if directory.embedding.is_file():
        return directory.path
    directory.path.mkdir(parents=True, exist_ok=True)
    side = 32 if count <= 100_000 else 8
    _make_images(folder / "cache" / "images" / str(count), count, side)
    source = StoredSource("folder", "", str(count), count, (side, side, 3), "c0ffee")
    directory.source.write_text(json.dumps(source.__dict__))
    clusters, centres = generator.integers(0, CLUSTERS, count), generator.normal(size=(CLUSTERS, FEATURES))
    paths = Names(f"folder{number % 97:02}/image_{number:07}.jpg" for number in range(count))
    nothing = np.zeros(count, bool)
    directory.write_assignments(Assignments(paths, clusters, generator.beta(6, 1, count), nothing, nothing))
    result = {"method": "dccm", "seed": 0, "n_clusters": CLUSTERS, "n_images": count, "warnings": []}
    directory.result.write_text(json.dumps(_result(result)))
    with directory.writing_embedding(paths) as add:
        for start in range(0, count, 5000):
            block = clusters[start : start + 5000]
            noise = generator.normal(size=(len(block), FEATURES)) * 1.5
            add((centres[block] + noise).astype(np.float32))
    return directory.path


def _result(known: dict[str, Any]) -> dict[str, Any]:
    from tests.report.runs import result_of

    return result_of(known["n_images"]) | known


def _make_images(folder: Path, count: int, side: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1).integers(0, 256, (DIFFERENT, side, side, 3), dtype=np.uint8)
    images = np.lib.format.open_memmap(folder / "images.npy", "w+", np.uint8, (count, side, side, 3))
    for start in range(0, count, DIFFERENT):
        images[start : start + DIFFERENT] = random[: count - start]


@contextmanager
def served(run: Path, cache: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and its address; it ends with the block."""
    words = [sys.executable, "-m", "dccm", "serve", str(run), "--port", "0"]
    environment = os.environ | {"DCCM_CACHE": str(cache)}
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    try:
        yield server, server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def one_round(browser: Any, run: Path, cache: Path) -> dict[str, float]:
    """All figures of one server and one page; seconds, unless their name says something else."""
    begun = time.perf_counter()
    with served(run, cache) as (server, address):
        found = {"address after": time.perf_counter() - begun}
        found["processor until then"] = used_by(server.pid)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(WATCH)
        page.goto(address)
        found["first view"] = page.wait_for_function("() => window.seen", timeout=120_000).json_value() / 1000
        found["from the command to the first view"] = time.perf_counter() - begun
        found |= searches(address)
        page.wait_for_timeout(1000)
        found |= frames(browser, page, "nothing moves", lambda: page.wait_for_timeout(4000))
        open_cluster(page)
        found |= frames(browser, page, "scrolling", lambda: scroll(page))
        found["map seen after"] = open_map(page)
        found |= frames(browser, page, "panning", lambda: pan(page))
        found |= frames(browser, page, "zooming", lambda: zoom(page))
        found |= memory(server.pid)
        page.close()
    return found


def frames(browser: Any, page: Any, name: str, act: Any) -> dict[str, float]:
    """The longest frame while something is done, and what a frame costs of a processor, in milliseconds."""
    before = processor_time(browser)
    page.evaluate("watching()")
    act()
    gaps = page.evaluate("watched()")
    used = {kind: 1000 * (now - before.get(kind, 0)) / len(gaps) for kind, now in processor_time(browser).items()}
    of = {"renderer": "page", "GPU": "drawing"}
    said = {f"{name}, longest frame (ms)": max(gaps), f"{name}, frames": float(len(gaps))}
    return said | {f"{name}, processor per frame, {of[kind]} (ms)": used[kind] for kind in of}


def processor_time(browser: Any) -> dict[str, float]:
    """Seconds of a processor that each kind of process of the browser has used."""
    session = browser.new_browser_cdp_session()
    used: dict[str, float] = {}
    for process in session.send("SystemInfo.getProcessInfo")["processInfo"]:
        used[process["type"]] = used.get(process["type"], 0) + process["cpuTime"]
    session.detach()
    return used


def open_cluster(page: Any) -> None:
    """Show the images of the first cluster."""
    page.locator(".card .open").first.click()
    page.wait_for_selector(".tile img")
    page.wait_for_timeout(1000)


def scroll(page: Any) -> None:
    """Turn the wheel through the images."""
    page.mouse.move(700, 500)
    for _ in range(80):
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(30)


def open_map(page: Any) -> float:
    """Show the map of all images; seconds until its first points are there."""
    page.locator(".filters select").first.select_option("")
    page.wait_for_timeout(1000)
    begun = time.perf_counter()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Map").click()
    page.wait_for_selector("canvas[data-seen]", timeout=120_000)
    seconds = time.perf_counter() - begun
    page.wait_for_timeout(5000)  # The other points follow; those of a million take longer.
    return seconds


def pan(page: Any) -> None:
    """Drag the map to and fro."""
    box = page.locator(".map canvas").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    for step in range(100):
        page.mouse.move(middle[0] + 200 * np.sin(step / 8), middle[1] + 150 * np.cos(step / 11))
        page.wait_for_timeout(20)
    page.mouse.up()
    page.wait_for_timeout(1500)  # What comes once it is still counts, too.


def zoom(page: Any) -> None:
    """Turn the wheel over the map."""
    for delta in [-100] * 12 + [100] * 12:
        page.mouse.wheel(0, delta)
        page.wait_for_timeout(40)
    page.wait_for_timeout(1500)


def searches(address: str) -> dict[str, float]:
    """Median seconds of five requests of each kind, once the server is warm."""
    asked = {
        "search by example": "api/rows?like=77",
        "search in paths": "api/rows?text=0012",
        "clusters": "api/clusters",
    }
    return {name: statistics.median([_seconds(address + path) for _ in range(6)][1:]) for name, path in asked.items()}


def _seconds(address: str) -> float:
    begun = time.perf_counter()
    with urlopen(address) as answer:
        answer.read()
    return time.perf_counter() - begun


def used_by(process: int) -> float:
    """Seconds of a processor that a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: int) -> dict[str, float]:
    """The server's largest resident memory, with pages of mapped files, and its own memory now."""
    status = Path(f"/proc/{process}/status").read_text()
    of = {name: int(re.search(name + r":\s+(\d+)", status)[1]) / 1000 for name in ("VmHWM", "RssAnon")}  # type: ignore[index]
    return {"largest memory (MB)": of["VmHWM"], "own memory (MB)": of["RssAnon"]}


def main() -> None:
    """Make the runs, look at each of them a few times, and print the figures of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, nargs="+", default=[60_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or sys.exit("Needs chromium: make chromium.")
    figures: dict[str, Any] = {}
    for count in asked.images:
        run = make_run(asked.folder, count)
        rounds = []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS + SOFTWARE_WEBGL)
            for _ in range(asked.rounds):
                load = os.getloadavg()[0]
                rounds.append({"load": load} | one_round(browser, run, asked.folder / "cache"))
        figures[str(count)] = rounds
        print(f"{count:,} images")
        for name in rounds[0]:
            print(f"  {name:38s}" + "".join(f"{found[name]:10.2f}" for found in rounds), flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
