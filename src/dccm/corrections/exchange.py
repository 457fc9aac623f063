"""Changes as lines of JSON, which say images by path: for other programs, and for other runs on the same images."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dccm.corrections.change import Change, Entry, change_from
from dccm.errors import UserError, require


def as_lines(entries: Iterable[Entry], paths: Sequence[str]) -> Iterator[str]:
    """One line for each entry of a log, undone ones included."""
    for entry in entries:
        head = {"number": entry.number, "time": entry.time, "who": entry.who, "kind": entry.change.kind}
        yield json.dumps(head | _with_paths(entry.change.document(), paths)) + "\n"


def _with_paths(document: dict[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """The same with the path beside the row of each image."""
    named = dict(document)
    if "images" in named:
        named["images"] = [[row, paths[row]] for row in named["images"]]
    if "parts" in named:
        named["parts"] = [[number, [[row, paths[row]] for row in rows]] for number, rows in named["parts"]]
    return named


def from_lines(lines: Iterable[str], paths: Sequence[str]) -> list[tuple[str, Change]]:
    """Who made which change, without what was undone; each image must be one of this run.

    Args:
        lines: What `as_lines` wrote, or the same by hand, where the path alone may stand in the place of row and path.
        paths: Of the images of this run.
    """
    rows = _Rows(paths)
    return _effective([_read(line, number, rows) for number, line in enumerate(lines, start=1) if line.strip()])


def _effective(changes: list[tuple[str, Change]]) -> list[tuple[str, Change]]:
    """Those that count: undo and redo name numbers of the log that they are from."""
    done: list[tuple[str, Change]] = []
    undone: list[tuple[str, Change]] = []
    for who, change in changes:
        if change.kind in ("undo", "redo"):
            taken, put = (done, undone) if change.kind == "undo" else (undone, done)
            require(bool(taken), f"The lines hold a change of the kind {change.kind} with nothing to {change.kind}.")
            put.append(taken.pop())
        else:
            done.append((who, change))
            undone.clear()
    return done


def _read(line: str, number: int, rows: "_Rows") -> tuple[str, Change]:
    try:
        document = json.loads(line)
        if isinstance(document, dict):
            document = document | {
                name: rows.of(document[name], name) for name in ("images", "parts") if name in document
            }
        change = change_from(document)
        return str(document.get("who", "")), change
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error) if isinstance(error, UserError) else f"It is no change as JSON ({error})."
        raise UserError(f"Line {number} cannot be taken over: {reason}") from error


class _Rows:
    """Finds the row of an image by its path; where several have the same path, the stated row decides."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._known: dict[str, int] = {}

    def of(self, value: Any, field: str) -> Any:
        """The rows of images, or of the parts of a split."""
        if field == "parts":
            return [(number, [self._row(image) for image in images]) for number, images in value]
        return [self._row(image) for image in value]

    def _row(self, image: Any) -> int:
        row, path = image if isinstance(image, list) else (-1, image)
        require(isinstance(path, str), f"an image must be a path, or a row and a path, got {str(image)[:50]}.")
        if isinstance(row, int) and 0 <= row < len(self._paths) and self._paths[row] == path:
            return row
        if not self._known:
            self._known = {path: number for number, path in enumerate(self._paths)}
        require(path in self._known, f"the image {path[:200]} is not one of this run.")
        return self._known[path]
