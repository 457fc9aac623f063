"""Commands in processes of their own, on machines that fail: killed, full, forbidden, short of means."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.data.pictures import contents, encoded, noise, put

COUNT = 2_300
"""Images: more than are prepared between two commits, which are 2,048."""
LIMIT = 400
"""Seconds after which a command hangs."""


def pictures(folder: Path, count: int = COUNT) -> Path:
    """Small pictures in several folders, a few of them broken."""
    for number in range(count):
        content = b"nothing" if number % 500 == 499 else encoded(noise(number, 8), "BMP")
        put(folder / f"{number % 7}" / f"{number:05}.bmp", content)
    return folder


def dccm(*words: object) -> list[str]:
    """A command line."""
    return [sys.executable, "-m", "dccm", *map(str, words)]


def prepare(images: Path, cache: Path, workers: int = 4) -> list[str]:
    """A command line that prepares images."""
    return dccm("prepare", images, "--image-size", 8, "--cache", cache, "--workers", workers)


def begin(words: list[str], limits: Callable[[], None] | None = None, **variables: str) -> "subprocess.Popen[str]":
    """Start a command."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"} | variables
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, text=True, errors="replace", env=environment, preexec_fn=limits, **pipes)  # type: ignore[call-overload, no-any-return]


def end(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit code and all that a command said; it may fail, but only in a sentence."""
    said, warned = process.communicate(timeout=LIMIT)
    assert "Traceback" not in warned, warned[-3000:]
    assert process.returncode in (0, 2, 130, -signal.SIGKILL), warned[-3000:]
    if process.returncode == 2:
        assert warned.strip().splitlines()[-1].startswith("dccm: "), warned[-3000:]
    return process.returncode, said + warned


def done(words: list[str], limits: Callable[[], None] | None = None, **variables: str) -> tuple[int, str]:
    """A command from start to end."""
    return end(begin(words, limits, **variables))


def killed(words: list[str], seconds: float) -> bool:
    """Kill a command after so many seconds; whether it was still at work."""
    process = begin(words)
    time.sleep(seconds)
    process.kill()
    return end(process)[0] == -signal.SIGKILL


def kill_until_done(words: list[str], chance: Random, longest: float, again: Callable[[], list[str]]) -> int:
    """Kill a command at random moments, each time a little later; how often it was."""
    kills = 0
    while killed(words, chance.uniform(0, longest)):
        words, longest, kills = again(), longest * 1.2, kills + 1
        assert kills < 60, "it never ends"
    return kills


def limited(kind: int, amount: int) -> Callable[[], None]:
    """What a child does before it begins: accept a limit."""
    return lambda: resource.setrlimit(kind, (amount, amount))


def clean(cache: Path) -> dict[str, bytes | str]:
    """What a cache holds that must be the same each time; a stop leaves what was being written."""
    kept = contents(cache)
    return {name: content for name, content in kept.items() if not name.endswith((".partial", "progress.json"))}


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A real disk of this size; the test is skipped where none can be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def remounted(folder: Path, options: str) -> None:
    """Change a small disk: `size=4000k`, `ro`, `rw`."""
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)
