"""What LightlyStudio loads: images by cluster, whose folders can become tags, and COCO annotations of whole images.

COCO knows no class of a whole image, so each has a box around all of it. `embeddings.csv` is the table that Lightly's
other tools take: name of the file, numbers, label.
"""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from dccm.exporting.content import Content, class_names
from dccm.exporting.formats import Format
from dccm.exporting.images import write_images
from dccm.files import whole_file, write_csv


def write(content: Content, path: Path) -> list[str]:
    """Write images, annotations and, where it is wanted, the embedding."""
    (path / "images").mkdir()
    files = write_images(content, path / "images", by_cluster=True)
    _write_annotations(content, path, files)
    embedding = content.rows.embedding
    if embedding is not None:
        header = ("filenames", *(f"embedding_{number}" for number in range(embedding.shape[1])), "labels")
        rows = ((file, *content.rows.feature(row), int(content.rows.clusters[row])) for row, file in _kept(files))
        write_csv(path / "embeddings.csv", header, rows)
    return []


def _write_annotations(content: Content, path: Path, files: Sequence[str | None]) -> None:
    names = class_names(content.rows)
    classes = {number: place for place, number in enumerate(names, start=1)}
    images, annotations = [], []
    for row, file in _kept(files):
        known = content.rows.values(row)
        width, height = _size(path / "images" / file)
        images.append({"id": row + 1, "file_name": file, "width": width, "height": height})
        annotations.append(_annotation(row + 1, (width, height), classes[known["cluster"]], known))
    categories = [{"id": place, "name": names[number]} for number, place in classes.items()]
    document = {"images": images, "annotations": annotations, "categories": categories}
    with whole_file(path / "annotations.json") as lines:
        lines.write(json.dumps(document).encode())


def _annotation(number: int, size: tuple[int, int], category: int, known: dict[str, Any]) -> dict[str, Any]:
    width, height = size
    box = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0}
    return {"id": number, "image_id": number, "category_id": category, "score": known["confidence"]} | box


def _kept(files: Sequence[str | None]) -> list[tuple[int, str]]:
    """The row and file of each image that was written."""
    return [(row, file) for row, file in enumerate(files) if file is not None]


def _size(path: Path) -> tuple[int, int]:
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        return image.size


FORMAT = Format("LightlyStudio", write)
