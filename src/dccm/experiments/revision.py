"""Which state of its source the program is in."""

import subprocess
from functools import cache
from pathlib import Path

_FILE = Path(__file__)


@cache
def revision() -> str | None:
    """The commit of the checkout that the package runs from, with `+` if files were changed; None: it is installed."""
    # A package that was installed into a folder of some other repository is not of that one's revision.
    if _git("ls-files", "--error-unmatch", _FILE.name) is None:
        return None
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return commit and commit + ("+" if changed else "")


def _git(*words: str) -> str | None:
    """What git says; None if it is not there, or refuses."""
    try:
        said = subprocess.run(["git", *words], cwd=_FILE.parent, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip()
