"""Build what users would install, check it, and use it where nothing of this folder is near: `make wheel`."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parent.parent
LARGEST = 5_000_000
"""Bytes of the installed package."""


def main() -> None:
    """Build, check, install, run the demo."""
    wheel = build(ROOT / "dist")
    size = sum(entry.file_size for entry in ZipFile(wheel).infolist())
    if size > LARGEST:
        sys.exit(f"The installed package has {size:,} bytes, and may have {LARGEST:,}.")
    with tempfile.TemporaryDirectory() as folder:
        use(wheel, Path(folder))
    print(f"{wheel.name} works where nothing else is; {size / 1e6:.1f} MB installed.")


def build(folder: Path) -> Path:
    """Make the wheel and the archive of the sources, and let twine look at both; the wheel."""
    for old in folder.glob("dccm-*"):
        old.unlink()
    # Without isolation: hatchling is one of the pinned tools.
    run("-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    run("-m", "twine", "check", "--strict", *sorted(folder.glob("dccm-*")))
    [wheel] = folder.glob("dccm-*.whl")
    return wheel


def use(wheel: Path, folder: Path) -> None:
    """Install a wheel in an empty environment, and cluster the digits with it."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pinned = ROOT / "requirements.txt"
    run("-m", "pip", "install", "--quiet", "--constraint", pinned, wheel, program=python, inside=folder)
    run("-m", "dccm", "demo", "-o", "demo", "--set", "epochs=2", "--quiet", program=python, inside=folder)
    if not (folder / "demo" / "report.html").is_file():
        sys.exit("The demo of the installed package wrote no report.")


def run(*words: object, program: str | Path = sys.executable, inside: Path = ROOT) -> None:
    """A program of Python, without what this process knows of the sources."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(program), *map(str, words)], cwd=inside, env=clean)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with exit code {done.returncode}.")


if __name__ == "__main__":
    main()
