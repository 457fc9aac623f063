"""Make a release: `make release VERSION=0.2.0`. Nothing leaves this machine; what to push stands at the end.

The version goes into the package and the citation, the changelog's section gets its number and date, the run that later
versions must read is kept, wheel and sources are built and used, and a commit and a tag are made.
"""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools.wheel import ROOT, build, run

PLACES = {
    "src/dccm/__init__.py": r'(__version__ = ")[^"]+(")',
    "pyproject.toml": r'(\nversion = ")[^"]+(")',
    "CITATION.cff": r"(\nversion: )\S+()",
}
"""Where the version stands."""


def main() -> None:
    """Change, build, commit, tag."""
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"VERSION must be three numbers, such as 0.2.0, got '{version}'.")
    if git("status", "--porcelain"):
        sys.exit("There are changes that are not committed. Commit them first; a release is what main holds.")
    if git("tag", "--list", f"v{version}"):
        sys.exit(f"v{version} is released already. Take {following(version)} or another version.")
    today = datetime.now(UTC).date().isoformat()
    # First, as it is the one that may be missing: then nothing has been changed yet.
    change(ROOT / "CHANGELOG.md", r"## \S+ \(unreleased\)", f"## {version} ({today})")
    for place, pattern in PLACES.items():
        change(ROOT / place, pattern, rf"\g<1>{version}\g<2>")
    run("-m", "tests.formats")
    wheel = build(ROOT / "dist")
    git("add", "--all", "CHANGELOG.md", "tests/formats", *PLACES)
    git("commit", "-m", f"Release {version}")
    git("tag", "--annotate", f"v{version}", "-m", f"dccm {version}")
    print(f"Tagged v{version}; {wheel.parent} holds what to upload. Then: git push --follow-tags")
    print(f'Open the next section of CHANGELOG.md: "## {following(version)} (unreleased)".')


def change(path: Path, pattern: str, to: str) -> None:
    """Replace what a pattern finds, which must be there exactly once."""
    text, count = re.subn(pattern, to, path.read_text(encoding="utf-8"))
    if count != 1:
        sys.exit(f"{path.name} has {count} places that look like {pattern}, and should have one.")
    path.write_text(text, encoding="utf-8")


def following(version: str) -> str:
    """The next version, if nothing else is decided."""
    first, second, _ = version.split(".")
    return f"{first}.{int(second) + 1}.0"


def git(*words: str) -> str:
    """What git answers."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
