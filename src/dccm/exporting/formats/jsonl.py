"""A line of JSON for each image, exact, also where the name of a file is no text: Python reads back the same name."""

import json
from pathlib import Path

from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.files import whole_file
from dccm.training.progress import Stage

_TOLD = 1000
"""Rows between two words on the progress."""


def write(content: Content, path: Path) -> list[str]:
    """Write one line for each image."""
    rows = content.rows
    with whole_file(path) as file:
        for row in range(len(rows)):
            known = rows.values(row)
            if rows.embedding is not None:
                known["embedding"] = rows.feature(row)
            file.write(json.dumps(known).encode() + b"\n")
            if row % _TOLD == 0:
                content.on_progress(Stage("writing rows", row / len(rows)))
    content.on_progress(Stage("writing rows", 1.0))
    return []


FORMAT = Format("programs that read line by line; exact", write, suffix=".jsonl")
