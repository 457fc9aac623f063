"""Parquet files in the Hugging Face image layout: a column `image` of bytes and path, `label`, `split`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dccm.data.names import Names, is_too_long
from dccm.data.sources.base import Source
from dccm.errors import UserError, require

IMAGE_COLUMNS = ("image", "img", "images", "picture")
LABEL_COLUMNS = ("label", "labels", "fine_label", "y", "class", "target")
SPLIT_COLUMNS = ("split",)


class Parquet(Source):
    """The rows of one parquet file, or of several that belong together.

    Args:
        files: In the order in which their rows are numbered.
        place: What the user named: a file, or the folder of the files.
    """

    kind = "parquet"

    def __init__(self, files: list[Path], place: Path) -> None:
        self.files = files
        self.place = str(place.resolve())
        # Now, so that a later change of the files shows.
        self._fingerprint = " ".join(f"{f.st_size} {f.st_mtime_ns}" for f in (file.stat() for file in files))
        self._tables = [_opened(file) for file in files]
        columns = _understood(files[0], lambda: list(self._tables[0].schema_arrow.names))
        self._column = _first(columns, IMAGE_COLUMNS)
        require(
            self._column is not None,
            f"{place} must have a column of images called {' or '.join(IMAGE_COLUMNS)}, it has "
            f"{', '.join(columns)}. Rename it.",
        )
        groups = [(table, group) for table in range(len(files)) for group in range(self._tables[table].num_row_groups)]
        sizes = [self._tables[table].metadata.row_group(group).num_rows for table, group in groups]
        self._require_plausible(sizes)
        self._groups, self._starts = groups, np.concatenate([[0], np.cumsum(sizes)])
        require(self._starts[-1] > 0, f"{place} has no rows. Give a file that holds images.")
        self._at, self._rows = -1, None
        self.names = self._paths()
        self.labels = self._labels(_first(columns, LABEL_COLUMNS))
        self.splits = self._labels(_first(columns, SPLIT_COLUMNS))

    def _require_plausible(self, rows: list[int]) -> None:
        """An image has a byte at least; a small file that claims a billion rows would be gone through for hours."""
        most = sum(file.stat().st_size for file in self.files)
        require(
            min(rows, default=0) >= 0 and sum(rows) <= most,
            f"{self.place} cannot be read as parquet (it claims {sum(rows):,} rows in {most:,} bytes). "
            "Give a sound file.",
        )

    def read(self, index: int) -> bytes:
        """The bytes of one image; the rows of one group are in memory at a time."""
        group = int(np.searchsorted(self._starts, index, side="right")) - 1
        if group != self._at:
            table, number = self._groups[group]
            self._rows = self._tables[table].read_row_group(number, columns=[self._column]).column(0)
            self._at = group
        cell: Any = self._rows[index - self._starts[group]].as_py()  # type: ignore[index]
        content = cell.get("bytes") if isinstance(cell, dict) else cell
        if not isinstance(content, bytes):
            raise ValueError("the row holds no bytes of an image")
        return content

    def close(self) -> None:
        """Let go of the files."""
        for table in self._tables:
            table.close()

    def fingerprint(self) -> str:
        """Sizes and times of the files."""
        return self._fingerprint

    def label_by_column(self, column: str) -> None:
        """Take another column as the images' true classes; for evaluation alone."""
        names = self._tables[0].schema_arrow.names
        require(
            column in names,
            f"{self.place} must have a column {column} for these classes, it has {', '.join(names)}. Give "
            "another file.",
        )
        self.labels = self._labels(column)

    def _paths(self) -> Names:
        """The paths that the rows state, or numbers where one is missing, not unique or too long."""
        named = Names(
            path if isinstance(path, str) and not is_too_long(path) else ""
            for path in self._values(f"{self._column}.path")
        )
        known = np.unique(np.fromiter((hash(name) for name in named), dtype=np.int64, count=len(named)))
        if len(named) == self._starts[-1] == len(known) and "" not in named:
            return named
        return Names(
            f"{file.stem}/{row}"
            for file, table in zip(self.files, self._tables)
            for row in range(table.metadata.num_rows)
        )

    def _labels(self, column: str | None) -> "np.ndarray[Any, Any] | None":
        """Whole numbers or words, one for each row; none if they are anything else, or some are missing."""
        if column is None:
            return None
        labels = list(self._values(column))
        plain = {type(label) for label in labels} in ({int}, {str})
        return np.array(labels) if plain and len(labels) == self._starts[-1] else None

    def _values(self, column: str) -> Any:
        """One column of all files; nothing if there is no such column."""
        for table, group in self._groups:
            try:
                read = self._tables[table].read_row_group(group, columns=[column])
                values = read.column(0).to_pylist() if read.num_columns else []
            except Exception as error:  # Damaged files raise nearly everything.
                raise _broken(self.files[table], error) from error
            yield from (value.get("path") if isinstance(value, dict) else value for value in values)


def _opened(file: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(f"Reading {file} needs pyarrow. Get it with: pip install 'dccm[data]'") from error
    # Not mapped: a file that is cut under its map ends the process.
    return _understood(file, lambda: parquet.ParquetFile(file))


def _understood(file: Path, part: Callable[[], Any]) -> Any:
    """A part of a file; damaged ones raise nearly everything."""
    try:
        return part()
    except Exception as error:
        raise _broken(file, error) from error


def _broken(file: Path, error: Exception) -> UserError:
    reason = " ".join(str(error).split())[:300]
    return UserError(f"{file} cannot be read as parquet ({reason}). Give a sound file.")


def _first(names: list[str], wanted: tuple[str, ...]) -> str | None:
    return next((name for name in wanted if name in names), None)
