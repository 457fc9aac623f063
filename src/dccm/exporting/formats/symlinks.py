"""A folder for each cluster with links to its images: no copies, as long as the images stay where they are."""

from pathlib import Path

from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.exporting.images import write_images
from dccm.exporting.indexes import write_index


def write(content: Content, path: Path) -> list[str]:
    """Write the links, and `index.csv`, which says what is known of each."""
    return write_index(content, path, write_images(content, path, by_cluster=True, link=True))


FORMAT = Format("a folder of links for each cluster, which take no room", write, embedding=False)
