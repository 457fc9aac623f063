"""The layout ImageFolder of torchvision and of Hugging Face: a folder for each class, and a list of what is known."""

from pathlib import Path

from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.exporting.images import write_images
from dccm.exporting.indexes import write_metadata


def write(content: Content, path: Path) -> list[str]:
    """Write the images of each cluster as a class, and `metadata.jsonl`."""
    return write_metadata(content, path, write_images(content, path, by_cluster=True))


FORMAT = Format("training a classifier: torchvision's ImageFolder, Hugging Face's imagefolder", write)
