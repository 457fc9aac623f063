"""A parquet file for tables: pandas, polars, DuckDB and all others read it, types and numbers as they are."""

from pathlib import Path

from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.exporting.tables import blocks_of, require_pyarrow, write_table


def write(content: Content, path: Path) -> list[str]:
    """Write one row for each image."""
    require_pyarrow("parquet")
    write_table(path, blocks_of(content.rows, content.on_progress))
    return []


FORMAT = Format("tables with exact types: pandas, polars, DuckDB", write, suffix=".parquet")
