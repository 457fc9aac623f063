"""Images of a run as files of a folder, one folder for each cluster, or all in one."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from dccm.errors import UserError, counted
from dccm.exporting.content import Content, Missing, class_names
from dccm.exporting.naming import FreeNames
from dccm.exporting.originals import WITHOUT_IMAGES, Encoded
from dccm.files import write_csv
from dccm.training.progress import Stage


def write_images(content: Content, folder: Path, *, by_cluster: bool, link: bool = False) -> list[str | None]:
    """Write all images into a new folder; those that cannot be read are noted.

    Args:
        content: What is written.
        folder: Where.
        by_cluster: In a folder for each cluster, or all in this one.
        link: As links to the files that they are.

    Returns:
        The path of each below the folder, with `/` between its parts; None for those that cannot be read.
    """
    folders = _folders(content, folder) if by_cluster else {}
    free: dict[str, FreeNames] = {}
    written: list[str | None] = [None] * len(content.rows)
    for row, found in each_image(content, link=link):
        inside = folders.get(int(content.rows.clusters[row]), "")
        stem, suffix = _name_of(content.rows.paths[row], found)
        names = free.setdefault(inside, FreeNames())
        # All in one folder are known by their names without suffixes.
        name = names.take(stem, suffix) if by_cluster else names.take(stem) + suffix
        target = folder / inside / name
        if isinstance(found, Path):
            target.symlink_to(found)
        else:
            target.write_bytes(found.content)
        written[row] = f"{inside}/{name}" if inside else name
    return written


def each_image(content: Content, *, link: bool = False) -> Iterator[tuple[int, Encoded | Path]]:
    """Each image that can be read, with its row: the content of a file or, where links are wanted, its place."""
    count = len(content.rows)
    content.originals.require_any()
    if link:
        content.originals.require_files()
    for row in range(count):
        try:
            found = content.originals.file(row) if link else content.originals.encoded(row)
        except Exception as error:  # Whatever is wrong with one image, the others go on.
            content.note_missing(row, error)
        else:
            yield row, found
        content.on_progress(Stage("writing images", (row + 1) / count))
    if len(content.missing) == count:
        first = content.missing[0]
        raise UserError(
            f"{content.directory.path} is of {counted(count, 'image')}, and none can be read; the first, {first.path}: "
            f"{first.reason}. {WITHOUT_IMAGES}."
        )


def write_missing(content: Content, path: Path) -> None:
    """List the images that could not be read, if there are any."""
    if content.missing:
        write_csv(path, Missing._fields, content.missing)


def _folders(content: Content, folder: Path) -> dict[int, str]:
    """A folder for each cluster that holds images, made."""
    free = FreeNames()
    names = {number: free.take(name) for number, name in class_names(content.rows).items()}
    for name in names.values():
        (folder / name).mkdir()
    return names


def _name_of(path: str, found: Encoded | Path) -> tuple[str, str]:
    """The last part of a path without its suffix, and the suffix that tells what is in the file."""
    place = PurePosixPath(path.replace("\\", "/"))
    suffix = found.suffix if isinstance(found, Encoded) else found.suffix.lower()
    return (place.stem if place.suffix.lower() == suffix else place.name), suffix
