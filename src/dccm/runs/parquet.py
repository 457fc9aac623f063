"""Tables as parquet beside the plain files, for those who have pyarrow."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dccm.files import whole_file

_ROW_GROUP = 16_384


def parquet_available() -> bool:
    """Whether pyarrow, of the extra `dccm[data]`, is installed."""
    return find_spec("pyarrow") is not None


def write_parquet(path: Path, blocks: Iterable[dict[str, Any]]) -> None:
    """Write blocks of columns as parquet, if pyarrow is installed; the command line says so when it is not."""
    if not parquet_available():
        return
    import pyarrow
    import pyarrow.parquet

    with whole_file(path) as file:
        writer = None
        for block in blocks:
            table = pyarrow.table(block)
            writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def row_groups(count: int) -> Iterator[slice]:
    """Rows that are written together, so that memory does not grow with the number of images."""
    return (slice(start, min(start + _ROW_GROUP, count)) for start in range(0, count, _ROW_GROUP))


def as_text(names: Sequence[str], rows: slice) -> list[str]:
    """Names that are text: parquet has no place for other bytes."""
    chosen = (names[row] for row in range(rows.start, rows.stop))
    return [name.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace") for name in chosen]
