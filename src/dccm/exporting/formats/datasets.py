"""A data set of Hugging Face: parquet with the images in it, and the card that says so.

`datasets.load_dataset` takes the folder, and so does `dccm cluster`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dccm.exporting.content import Content, Rows
from dccm.exporting.formats import Format
from dccm.exporting.images import each_image
from dccm.exporting.originals import Encoded
from dccm.exporting.tables import columns_of, joined, require_pyarrow, write_table
from dccm.files import write_atomically

_AT_ONCE = 100
"""Images in memory."""
_FILE = "data/train-00000-of-00001.parquet"
_CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.parquet
---

Images and their clusters, written by dccm. Load it with `datasets.load_dataset("path/of/this/folder", split="train")`.
"""
_TYPES = {"int64": "int64", "string": "string", "double": "float64", "bool": "bool", "float": "float32"}
"""What pyarrow calls them, and what `datasets` does."""


def write(content: Content, path: Path) -> list[str]:
    """Write card and table."""
    require_pyarrow("datasets")
    (path / "data").mkdir()
    metadata = {"huggingface": json.dumps({"info": {"features": _features(content.rows)}})}
    write_table(path / _FILE, _blocks(content), metadata)
    write_atomically(path / "README.md", _CARD)
    return []


def _blocks(content: Content) -> Iterator[dict[str, Any]]:
    block: list[tuple[int, Encoded]] = []
    for row, found in each_image(content):
        assert isinstance(found, Encoded)
        block.append((row, found))
        if len(block) == _AT_ONCE:
            yield _columns(content.rows, block)
            block = []
    if block:
        yield _columns(content.rows, block)


def _columns(rows: Rows, block: list[tuple[int, Encoded]]) -> dict[str, Any]:
    import pyarrow

    parts = [columns_of(rows, slice(row, row + 1)) for row, _ in block]
    columns = joined(parts)
    cells = zip(columns["path"].to_pylist(), (found for _, found in block))
    images = [{"bytes": found.content, "path": _named(path, found)} for path, found in cells]
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    return {"image": pyarrow.array(images, kind)} | columns


def _named(path: str, found: Encoded) -> str:
    """The name that goes with the bytes; it has the suffix of what they are."""
    return path if path.lower().endswith(found.suffix) else path + found.suffix


def _features(rows: Rows) -> dict[str, Any]:
    """The columns as `datasets` describes them."""
    features: dict[str, Any] = {"image": {"_type": "Image"}}
    for name, column in columns_of(rows, slice(0, 1)).items():
        if name == "embedding":
            features[name] = {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"}
        else:
            features[name] = {"dtype": _TYPES[str(column.type)], "_type": "Value"}
    return features


FORMAT = Format("Hugging Face datasets", write)
