"""Headless Chromium of the system, driven by playwright; tests that need it are skipped where either is missing."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
# Nothing outside this machine is asked for; WebGL is drawn by the processor.
FLAGS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
]  # fmt: skip
AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
WAIT = 20_000
"""Milliseconds that something may take on a busy machine."""


@contextmanager
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    if BROWSER is None:
        pytest.skip("needs chromium; Debian's package is chromium")
    with api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)


@contextmanager
def tab(chromium: Any, address: str, *, quiet: bool = True, **options: Any) -> Iterator[Any]:
    """A tab of its own; at its end there must have been no error on its console.

    Args:
        chromium: The browser.
        address: What it shows.
        quiet: Whether errors count; not where the server is killed.
        options: Size, colour scheme, and so on.
    """
    context = chromium.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
    context.set_default_timeout(WAIT)
    page, errors = context.new_page(), []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    page.wait_for_selector(".card, .tile, .empty:not(.loading)")
    yield page
    context.close()
    assert not quiet or errors == []
