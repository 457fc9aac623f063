"""Find the oldest versions of the dependencies with which the tests pass: `make oldest`.

Each library in turn is laid over the pinned set, and the oldest of its minor releases that passes is found by halving.
Then all of these are installed together in an environment of their own, and all tests run there, or those of `--quick`.
What passes stands in `requirements-oldest.txt`, which says what was run, and `pyproject.toml` says the same, which a
test checks. torch stays where it was run.
"""

import argparse
import os
import re
import subprocess
import sys
import textwrap
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOUND = ROOT / "requirements-oldest.txt"
PINNED = ROOT / "requirements.txt"
LIBRARIES = {
    "numpy": "tests/data tests/grouping tests/evaluation tests/runs tests/test_estimators.py tests/test_npy.py",
    "scipy": "tests/grouping tests/evaluation tests/methods/test_spectral.py tests/methods/test_agglomerative.py",
    "scikit-learn": "tests/grouping tests/evaluation tests/test_estimators.py tests/test_estimators_saved.py",
    "pillow": "tests/data tests/report tests/gallery",
    "safetensors": "tests/runs tests/training/test_checkpoint.py tests/test_resume.py tests/strangers",
    "typer": "tests/test_help.py tests/test_cli.py tests/test_cli_data.py tests/test_cli_probe.py tests/test_docs.py",
    "rich": "tests/test_progress.py tests/test_live.py tests/test_cli.py tests/test_cli_data.py",
    "jinja2": "tests/report tests/commands/test_cluster.py",
    "pyarrow": "tests/data/sources tests/runs/test_directory.py tests/data/test_prepare.py",
    "starlette": "tests/gallery",
    "uvicorn": "tests/gallery tests/test_cli_gallery.py",
    "onnxruntime": "tests/networks tests/runs/test_features.py",
}
"""The libraries, and the tests of what uses each of them."""
QUICK = (
    "tests/data/sources tests/data/test_decode.py tests/test_npy.py tests/evaluation tests/grouping tests/runs "
    "tests/formats tests/report tests/test_estimators.py tests/test_help.py tests/test_json.py tests/test_progress.py "
    "tests/test_cli_data.py"
)
"""What reaches all of them in a few minutes: images, clusters, files, pages, estimators, the command line."""


def main() -> None:
    """Halve, write down, and run everything with all of them together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", help="only these; the others stay as they were found before")
    parser.add_argument("--together", action="store_true", help="only run the tests with what was found before")
    parser.add_argument("--quick", action="store_true", help="run a part of the tests with all of them together")
    asked = parser.parse_args()
    bounds = read(FOUND) if FOUND.exists() else {}
    for name in [] if asked.together else asked.libraries or LIBRARIES:
        bounds[name] = oldest(name)
        write(bounds, "each alone; not together yet")
    code = run_together(bounds, QUICK.split() if asked.quick else [])
    if code == 0:
        write(bounds, QUICK if asked.quick else "all")
    sys.exit(code)


def oldest(name: str) -> str:
    """The oldest minor release of a library with which its tests pass, beside the pinned others."""
    pinned = read(PINNED)[name]
    candidates = [version for version in minors(released(name)) if number(version) < number(pinned)]

    def passes(version: str) -> bool:
        good = tests_pass(name, version)
        print(f"{name} {version}: {'passes' if good else 'fails'}", flush=True)
        return good

    return first_that_passes([*candidates, pinned], passes)


def first_that_passes(versions: Sequence[str], passes: Callable[[str], bool]) -> str:
    """The first of rising versions from which on all pass, by halving; the last one is known to."""
    below, good = -1, len(versions) - 1
    while good - below > 1:
        middle = (below + good) // 2
        below, good = (below, middle) if passes(versions[middle]) else (middle, good)
    return versions[good]


def minors(versions: Sequence[str]) -> list[str]:
    """The newest patch of each minor release, rising."""
    newest: dict[tuple[int, ...], str] = {}
    for version in sorted(versions, key=number):
        newest[number(version)[:2]] = version
    return list(newest.values())


def number(version: str) -> tuple[int, ...]:
    """A version as numbers, so that 1.10 comes behind 1.9."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def released(name: str) -> list[str]:
    """All final releases that the index knows."""
    asked = [sys.executable, "-m", "pip", "index", "versions", name, "--disable-pip-version-check"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    listed = re.search(r"Available versions: (.*)", answer)
    versions = listed.group(1).split(", ") if listed else []
    return [version for version in versions if re.fullmatch(r"[\d.]+", version)]


def tests_pass(name: str, version: str) -> bool:
    """Whether a library's tests pass with one of its releases laid over the environment."""
    folder = ROOT / "build" / "oldest" / f"{name}-{version}"
    if not folder.exists() and not laid_down(f"{name}=={version}", folder):
        return False
    paths = os.pathsep.join([str(folder), str(ROOT / "src")])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *LIBRARIES[name].split()]
    return (
        subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True).returncode == 0
    )


def laid_down(requirement: str, folder: Path) -> bool:
    """Install one library alone into a folder; whether there is a build of it for this Python."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    return subprocess.run([*pip, "--target", str(folder), requirement], capture_output=True).returncode == 0


def run_together(bounds: dict[str, str], tests: Sequence[str]) -> int:
    """Tests (none: all) with the oldest of everything, in an environment of its own; the exit code of pytest."""
    folder = ROOT / "build" / "oldest" / "venv"
    venv.create(folder, with_pip=True, clear=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    chosen = read(PINNED) | bounds
    lines = folder / "requirements.txt"
    lines.write_text("".join(f"{name}=={version}\n" for name, version in chosen.items()), encoding="utf-8")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", str(lines)], check=True)
    quick = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    subprocess.run(quick, check=True)
    return subprocess.run([python, "-m", "pytest", "-q", "-n", "2", *tests], cwd=ROOT).returncode


def read(path: Path) -> dict[str, str]:
    """Names and versions of a file of pins."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", "\n".join(lines), flags=re.MULTILINE))


def write(bounds: dict[str, str], tests: str) -> None:
    """Keep what was found so far, and by which tests."""
    python = ".".join(map(str, sys.version_info[:2]))
    told = f"Found by `make oldest`, Python {python}; pyproject.toml says the same. Tests that passed: {tests}"
    head = "".join(f"# {line}\n" for line in textwrap.wrap(told, 118))
    FOUND.write_text(head + "".join(f"{name}=={bounds[name]}\n" for name in bounds), encoding="utf-8")


if __name__ == "__main__":
    main()
