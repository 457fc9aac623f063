"""The layout FiftyOneImageClassificationDataset: images in `data/`, and `labels.json` with what is known of each.

What is no label has no place in that layout; the embedding is a file beside it, in the order of the labels.
"""

import json
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from dccm.exporting.content import Content, class_names
from dccm.exporting.formats import Format
from dccm.exporting.images import write_images
from dccm.files import whole_file, write_atomically

_RENAMED = {"label": "ground_truth"}


def write(content: Content, path: Path) -> list[str]:
    """Write images, labels and, where it is wanted, the embedding."""
    (path / "data").mkdir()
    files = write_images(content, path / "data", by_cluster=False)
    written = {PurePosixPath(file).stem: row for row, file in enumerate(files) if file is not None}
    names = class_names(content.rows)
    places = {number: place for place, number in enumerate(names)}
    labels = {name: _label(content.rows.values(row), places) for name, row in written.items()}
    write_atomically(path / "labels.json", json.dumps({"classes": list(names.values()), "labels": labels}))
    if content.rows.embedding is not None:
        with whole_file(path / "embedding.npy") as file:
            np.save(file, content.rows.embedding[list(written.values())])
    return []


def _label(known: dict[str, Any], places: dict[int, int]) -> dict[str, Any]:
    """An image's class by its place in the list, how sure it is, and all else."""
    # The attribute may not be called as the class is.
    attributes = {_RENAMED.get(name, name): value for name, value in known.items() if name != "confidence"}
    label: dict[str, Any] = {"label": places[known["cluster"]], "attributes": attributes}
    return label if known["confidence"] is None else label | {"confidence": known["confidence"]}


FORMAT = Format("FiftyOne", write)
