"""What the site has beyond `docs/`: the pages of the root, the reference, and the files that pages link to.

Pages are written for readers of the repository. Here their links get the places that the site has for the same files.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from website import reference  # noqa: E402

PLACES = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
"""Where files of the repository are on the site, if not at their place below docs/."""
LINK = re.compile(r'(\]\(|src=")([^)\s"#:]+)(?=[)#"])')
"""A link, or the source of a picture, to a file: its beginning, and the path."""


def on_files(files: Files, config: Any) -> Files:
    """Add what lies outside of docs/."""
    if (overview := files.get_file_from_path("README.md")) is not None:
        files.remove(overview)
    for source, place in PLACES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, "site.css", abs_src_path=str(ROOT / "website" / "site.css")))
    files.append(File.generated(config, "reference/commands.md", content=reference.commands()))
    files.append(File.generated(config, "reference/python.md", content=reference.python()))
    pages = [*ROOT.glob("docs/**/*.md"), *(ROOT / source for source in PLACES)]
    for target in sorted({target for page in pages for target in _outside(page)}):
        files.append(_generated(target, config))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn the links of a page into those of the site."""
    place = page.file.src_uri
    source = next((source for source, other in PLACES.items() if other == place), f"docs/{place}")

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link.group(2)))
        return link.group(1) + posixpath.relpath(_place(target), posixpath.dirname(place) or ".")

    return markdown if place.startswith(("reference/", "files/")) else LINK.sub(moved, markdown)


def _place(target: str) -> str:
    """Where the site has a file of the repository."""
    if target in PLACES:
        return PLACES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return f"files/{target}/index.md" if (ROOT / target).is_dir() else f"files/{target}"


def _outside(page: Path) -> set[str]:
    """What a page links to that has no place below docs/."""
    links = [link for _, link in LINK.findall(page.read_text(encoding="utf-8"))]
    folder = page.parent.relative_to(ROOT).as_posix()
    targets = {posixpath.normpath(posixpath.join(folder, link)) for link in links}
    return {target for target in targets if target not in PLACES and not target.startswith("docs/")}


def _generated(target: str, config: Any) -> File:
    """A file as it is, or the list of a folder."""
    if not (ROOT / target).is_dir():
        return File.generated(config, _place(target), abs_src_path=str(ROOT / target))
    names = sorted(path.name for path in (ROOT / target).iterdir() if not path.name.startswith(("__", ".")))
    lines = "\n".join(f"- `{name}`" for name in names)
    return File.generated(config, _place(target), content=f"# {target}\n\nIn the repository:\n\n{lines}\n")
