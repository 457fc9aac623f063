"""A CSV file for spreadsheets: text that one would take for a formula is made harmless, unless it is wanted plain."""

from pathlib import Path

from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.exporting.sheets import sheet_rows
from dccm.files import write_csv


def write(content: Content, path: Path) -> list[str]:
    """Write one line for each image; the embedding, where it is wanted, has a column for each number."""
    rows = content.rows
    size = 0 if rows.embedding is None else rows.embedding.shape[1]
    header = (*rows.columns, *(f"embedding_{number}" for number in range(size)))
    write_csv(path, header, sheet_rows(content))
    return []


FORMAT = Format("spreadsheets; names are made harmless for them", write, suffix=".csv", embedding=False)
