"""Rows for spreadsheets, which take text that begins like a formula for one, and would run what a stranger named."""

from collections.abc import Iterator, Sequence
from typing import Any

from dccm.exporting.content import Content
from dccm.training.progress import Stage

_BEGINNINGS = tuple("=+-@\t\r\n＝＋－＠")
"""Of what spreadsheets take for a formula, or what leads to one."""
_TOLD = 1000


def harmless(text: str) -> str:
    """Text that a spreadsheet takes for text: an apostrophe before what begins like a formula."""
    return f"'{text}" if text.startswith(_BEGINNINGS) else text


def sheet_rows(content: Content, before: Sequence[str | None] | None = None) -> Iterator[list[Any]]:
    """Each image as a line of a spreadsheet.

    Args:
        content: What is written.
        before: What comes before the others in each line; rows where it is None are left out.
    """
    rows = content.rows
    for row in range(len(rows)):
        if before is not None and before[row] is None:
            continue
        values = ([] if before is None else [before[row]]) + list(rows.values(row).values())
        yield [_cell(value, content.plain) for value in values] + ([] if rows.embedding is None else rows.feature(row))
        if row % _TOLD == 0:
            content.on_progress(Stage("writing rows", row / len(rows)))
    content.on_progress(Stage("writing rows", 1.0))


def _cell(value: Any, plain: bool) -> Any:
    if isinstance(value, bool):
        return int(value)
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6f}"
    return harmless(value) if isinstance(value, str) and not plain else value
