"""A parquet file for Embedding Atlas: two places on a map, nearest neighbours and a small picture of each image.

embedding-atlas clusters.parquet --x x --y y --neighbors neighbors --image image
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import Floats
from dccm.errors import UserError, require
from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.exporting.originals import as_thumbnail
from dccm.exporting.tables import columns_of, require_pyarrow, write_table
from dccm.gallery.space import Space
from dccm.training.progress import Stage

_AT_ONCE = 500
_NEIGHBOURS = 15
_HINT = "Open it with: embedding-atlas {name} --x x --y y --neighbors neighbors{image}"


def write(content: Content, path: Path) -> list[str]:
    """Write one row for each image."""
    require_pyarrow("embedding-atlas")
    directory = content.directory
    require(
        directory.embedding.is_file(),
        f"embedding-atlas needs the embedding of a run, and there is none in {directory.path}. Export parquet.",
    )
    content.on_progress(Stage("arranging", 0.0))
    space = Space(directory.read_embedding(len(content.rows.paths)))
    pictures, notes = _pictures_there(content)
    write_table(path, _blocks(content, space, pictures))
    name = path.name.removesuffix(".partial")
    return [*notes, _HINT.format(name=name, image=" --image image" if pictures else "")]


def _pictures_there(content: Content) -> tuple[bool, list[str]]:
    """Whether there are images, and a word if not: the map is of use without them."""
    try:
        content.originals.require_any()
    except UserError as error:
        return False, [f"There are no pictures in it. {error}"]
    return True, []


def _blocks(content: Content, space: Space, pictures: bool) -> Iterator[dict[str, Any]]:
    import pyarrow

    places, search = space.map(), _search(space.points)
    count = len(content.rows)
    for start in range(0, count, _AT_ONCE):
        part = slice(start, min(start + _AT_ONCE, count))
        columns = columns_of(content.rows, part)
        columns |= {name: pyarrow.array(places[part, axis]) for axis, name in enumerate("xy")}
        columns["neighbors"] = _neighbours(search, space.points[part])
        if pictures:
            columns["image"] = _images(content, range(part.start, part.stop))
        yield columns
        content.on_progress(Stage("writing rows", part.stop / count))


def _search(points: Floats) -> Any:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(points))).fit(points)


def _neighbours(search: Any, points: Floats) -> Any:
    """The rows of the nearest images and how far they are, as a column."""
    import pyarrow

    distances, rows = search.kneighbors(points)
    kind = pyarrow.struct([("ids", pyarrow.list_(pyarrow.int64())), ("distances", pyarrow.list_(pyarrow.float64()))])
    cells = [{"ids": ids, "distances": far} for ids, far in zip(rows.tolist(), np.asarray(distances).tolist())]
    return pyarrow.array(cells, kind)


def _images(content: Content, rows: range) -> Any:
    """Small copies as a column; what cannot be read any more has none."""
    import pyarrow

    cells: list[dict[str, bytes | None] | None] = []
    for row in rows:
        try:
            cells.append({"bytes": as_thumbnail(content.originals.item(row)), "path": None})
        except Exception as error:  # Whatever is wrong with one image, the others go on.
            content.note_missing(row, error)
            cells.append(None)
    return pyarrow.array(cells, pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())]))


FORMAT = Format("Embedding Atlas", write, suffix=".parquet")
