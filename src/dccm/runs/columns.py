"""What `assignments.csv` says; a large one is read by pyarrow where that is installed, in a fraction of the time.

It is the same file that is read, not a copy that could be older. Whatever pyarrow finds odd is read row by row, which
says in a sentence what is wrong with it.
"""

from pathlib import Path

import numpy as np

from dccm.data.names import Names
from dccm.files import open_regular, read_csv
from dccm.runs.contents import ASSIGNMENT_COLUMNS, FIRST_COLUMNS, NO_CLUSTER, Assignments, ColumnReader

_LARGE = 8 * 1024 * 1024
"""Bytes from which it pays: pyarrow itself takes half a second and 50 MB to be there."""


def assignments_of(path: Path, repair: str) -> Assignments:
    """Cluster and confidence of each image.

    Args:
        path: `assignments.csv`.
        repair: The way out if it is broken, behind a semicolon.
    """
    quick = quick_assignments(path)
    if quick is not None:
        _release()
        return quick
    reader = ColumnReader()
    return reader.assignments(Names(reader.paths(read_csv(path, _columns(path), repair, exactly=True))))


def _release() -> None:
    """Give the system back what pyarrow keeps for the next table: there is none."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


def _columns(path: Path) -> tuple[str, ...]:
    """What the file has to begin with; older versions wrote fewer columns."""
    with path.open("rb") as file:
        older = file.readline(100).strip() == ",".join(FIRST_COLUMNS).encode()
    return FIRST_COLUMNS if older else ASSIGNMENT_COLUMNS


def quick_assignments(path: Path, least: int = _LARGE) -> Assignments | None:
    """The assignments; None: they must be read row by row.

    Args:
        path: `assignments.csv`.
        least: Bytes that it must have.
    """
    if path.stat().st_size < least:
        return None
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    kinds = (pa.large_binary(), pa.int64(), pa.float64(), pa.int64(), pa.int64())
    try:
        with open_regular(path) as file:
            table = csv.read_csv(
                file,
                csv.ReadOptions(use_threads=False),
                csv.ParseOptions(newlines_in_values=True),
                csv.ConvertOptions(column_types=dict(zip(ASSIGNMENT_COLUMNS, kinds)), null_values=[""]),
            )
    except pa.ArrowInvalid:
        return None
    if tuple(table.column_names) != ASSIGNMENT_COLUMNS:
        return None
    names, clusters, confidences, best, outliers = (column.combine_chunks() for column in table.columns)
    if clusters.null_count or best.null_count or outliers.null_count:
        return None
    _, ends, text = names.buffers()
    return Assignments(
        Names.of_parts(memoryview(text), np.frombuffer(ends, np.int64)),
        best.to_numpy().copy(),  # A view would keep all columns in memory.
        confidences.to_numpy(zero_copy_only=False).clip(0, 1),
        clusters.to_numpy() == NO_CLUSTER,
        outliers.to_numpy() != 0,
    )
