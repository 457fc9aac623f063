"""The rows of a run as columns of pyarrow, some thousand at a time."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dccm.errors import UserError
from dccm.exporting.content import Rows
from dccm.files import whole_file
from dccm.runs.parquet import as_text, parquet_available, row_groups
from dccm.training.progress import OnProgress, Stage


def require_pyarrow(what: str) -> None:
    """Refuse to write parquet without its library."""
    if not parquet_available():
        raise UserError(f"{what} needs pyarrow. Get it with: pip install 'dccm[data]'")


def columns_of(rows: Rows, part: slice) -> dict[str, Any]:
    """Some rows as columns with their types; names that are no text have a mark in the place of what is none."""
    import pyarrow

    clusters = rows.clusters[part]
    confidences = np.asarray(rows.confidences[part], np.float64)
    columns = {
        "path": pyarrow.array(as_text(rows.paths, part), pyarrow.string()),
        "cluster": pyarrow.array(clusters, pyarrow.int64()),
        "name": pyarrow.array([rows.names.get(int(cluster), "") for cluster in clusters], pyarrow.string()),
        "confidence": pyarrow.array(confidences, pyarrow.float64(), mask=np.isnan(confidences)),
        "corrected": pyarrow.array(rows.corrected[part], pyarrow.bool_()),
        "outlier": pyarrow.array(rows.outliers[part], pyarrow.bool_()),
        "wrong": pyarrow.array(rows.wrong[part], pyarrow.bool_()),
    }
    if rows.labels is not None:
        whole = all(isinstance(label, int | None) for label in rows.labels)
        columns["label"] = pyarrow.array(rows.labels[part], pyarrow.int64() if whole else pyarrow.string())
    if rows.embedding is not None:
        columns["embedding"] = as_lists(rows.embedding[part])
    return columns


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns of several parts as one."""
    import pyarrow

    return {name: pyarrow.concat_arrays([part[name] for part in parts]) for name in parts[0]}


def as_lists(values: Any) -> Any:
    """Numbers (N, D) as a column of lists."""
    import pyarrow

    flat = pyarrow.array(np.ascontiguousarray(values, np.float32).reshape(-1), pyarrow.float32())
    starts = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pyarrow.ListArray.from_arrays(pyarrow.array(starts), flat)


def write_table(path: Path, blocks: Iterator[dict[str, Any]], metadata: Mapping[str, str] | None = None) -> None:
    """Write blocks of columns of the same types as one parquet file.

    Args:
        path: The file.
        blocks: The columns.
        metadata: Text beside them, for the library that the file is for.
    """
    import pyarrow
    import pyarrow.parquet

    with whole_file(path) as file:
        writer = None
        for columns in blocks:
            table = pyarrow.table(columns).replace_schema_metadata(metadata)
            writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def blocks_of(rows: Rows, on_progress: OnProgress) -> Iterator[dict[str, Any]]:
    """All rows as blocks of columns."""
    for part in row_groups(len(rows)):
        yield columns_of(rows, part)
        on_progress(Stage("writing rows", part.stop / len(rows)))
