"""Rows on standard output: as a table for people, as CSV or JSON for programs."""

import json
import sys
from typing import Any

from dccm.files import csv_lines


def print_csv(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Print rows as CSV; names of files may be any bytes."""
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    sys.stdout.writelines(csv_lines([header, *rows]))


def print_table(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows as a table, or as JSON."""
    if as_json:
        print(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*(str(name) for name in rows[0]), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 160).print(table, markup=False, highlight=False)
