"""Lists beside images that were written: what is known of each file."""

import json
from collections.abc import Sequence
from pathlib import Path

from dccm.exporting.content import Content
from dccm.exporting.sheets import sheet_rows
from dccm.files import whole_file, write_csv
from dccm.runs.parquet import as_text


def write_index(content: Content, folder: Path, files: Sequence[str | None]) -> list[str]:
    """Write `index.csv`.

    Args:
        content: What was written.
        folder: Where.
        files: The file of each image below the folder; None: it could not be read.
    """
    size = 0 if content.rows.embedding is None else content.rows.embedding.shape[1]
    header = ("file", *content.rows.columns, *(f"embedding_{number}" for number in range(size)))
    write_csv(folder / "index.csv", header, sheet_rows(content, files))
    return []


def write_metadata(content: Content, folder: Path, files: Sequence[str | None]) -> list[str]:
    """Write `metadata.jsonl`, which Hugging Face's ImageFolder takes the columns of its images from."""
    rows = content.rows
    with whole_file(folder / "metadata.jsonl") as lines:
        for row, file in enumerate(files):
            if file is None:
                continue
            known = {"file_name": file} | rows.values(row) | {"path": as_text(rows.paths, slice(row, row + 1))[0]}
            if rows.embedding is not None:
                known["embedding"] = rows.feature(row)
            lines.write(json.dumps(known).encode() + b"\n")
    return []
