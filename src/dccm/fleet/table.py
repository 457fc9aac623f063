"""The result of a shard: a parquet file with a row for each image, and what it is the result of."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dccm.errors import UserError
from dccm.runs.parquet import parquet_available

_KEY = b"dccm"
"""Of what a result says of itself, in the metadata of its file."""


class Table:
    """Writes the rows of a shard, some at a time.

    Args:
        path: The file.
        types: Of the columns that a job has to say, as parquet knows them: int64, float, floats.
    """

    def __init__(self, path: Path, types: Mapping[str, str]) -> None:
        import pyarrow
        from pyarrow import parquet

        known = {"int64": pyarrow.int64(), "float": pyarrow.float32(), "floats": pyarrow.list_(pyarrow.float32())}
        columns = [(name, known[kind]) for name, kind in types.items()]
        self._arrow = pyarrow
        self._schema = pyarrow.schema([("path", pyarrow.string()), *columns, ("reason", pyarrow.string())])
        self._types = dict(columns)
        self._writer = parquet.ParquetWriter(path, self._schema)

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def add(self, paths: Sequence[str], reasons: Sequence[str], columns: Mapping[str, Any]) -> None:
        """The next images.

        Args:
            paths: Of all of them.
            reasons: Why an image could not be read; empty: it could.
            columns: What is said of those that could, in their order.
        """
        arrow = self._arrow
        places = iter(range(len(paths)))
        sound = arrow.array([None if reason else next(places) for reason in reasons], arrow.int64())
        said = [arrow.array(columns.get(name, []), kind).take(sound) for name, kind in self._types.items()]
        text = [path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in paths]
        arrays = [arrow.array(text, arrow.string()), *said, arrow.array([reason or None for reason in reasons])]
        arrays[-1] = arrays[-1].cast(arrow.string())
        self._writer.write_table(arrow.Table.from_arrays(arrays, schema=self._schema))

    def say(self, document: Mapping[str, Any]) -> None:
        """What the file is the result of; after the last row."""
        self._writer.add_key_value_metadata({_KEY: json.dumps(document).encode()})


def said_of(file: Any) -> dict[str, Any]:
    """What a result says of itself; nothing if it is none of ours, or not whole.

    Args:
        file: A path, or an open file.
    """
    from pyarrow import parquet

    try:
        document = json.loads(parquet.read_metadata(file).metadata[_KEY])
    except Exception:  # Damaged files raise nearly everything.
        return {}
    return document if isinstance(document, dict) else {}


def require_pyarrow() -> None:
    """Refuse before anything is done."""
    if not parquet_available():
        raise UserError("Results of shards are parquet, which needs pyarrow. Get it with: pip install 'dccm[data]'")
