"""A folder for each cluster with copies of its images, to be looked at in any program, or to be kept."""

from pathlib import Path

from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.exporting.images import write_images
from dccm.exporting.indexes import write_index


def write(content: Content, path: Path) -> list[str]:
    """Write the images, and `index.csv`, which says what is known of each file."""
    return write_index(content, path, write_images(content, path, by_cluster=True))


FORMAT = Format("a folder of copies for each cluster", write, embedding=False)
