"""Images of a source, read one after the other and decoded beside each other: what became of each, in their order."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image

from dccm.arrays import Bytes
from dccm.data.cache import Outcome, Writer
from dccm.data.decode import Preparation, decode
from dccm.data.duplicates import content_hash
from dccm.data.passing import is_passing, require_means
from dccm.data.sources.base import Item, Source
from dccm.processes import mapped

_GROUP = 16
"""Images that a thread decodes at a time."""
_GROUP_BYTES = 8 * 1024 * 1024
"""Or fewer, if they are in memory already and take so much of it."""
_LONGEST_REASON = 300
_COMMIT = 128
"""Groups between two points from which a stopped preparation goes on."""
_AHEAD = 16
"""Groups for each thread that may wait to be written, so that decoding goes on while the disk is slow."""


def fill(
    writer: Writer, source: Source, wanted: Preparation, threads: int, on_done: Callable[[int], None] = lambda _: None
) -> None:
    """Append what becomes of the images that a preparation does not hold yet.

    Args:
        writer: Of the preparation.
        source: Where the images come from.
        wanted: What each is brought to.
        threads: That decode.
        on_done: Called with the number of images that are done.
    """
    for number, made in enumerate(outcomes(source, writer.progress.done, wanted, threads)):
        start = writer.progress.done
        writer.append((source.names[start + place] for place in range(len(made))), made)
        if number % _COMMIT == _COMMIT - 1:
            writer.commit()
        on_done(writer.progress.done)
    writer.commit()


def outcomes(source: Source, start: int, wanted: Preparation, threads: int) -> Iterator[list[Outcome]]:
    """What becomes of the images from a place on, some at a time, in their order."""

    def decoded(group: list[Item | Exception]) -> list[Outcome]:
        return [outcome_of(item, wanted) for item in group]

    with ThreadPoolExecutor(threads) as pool:
        yield from mapped(pool, decoded, _groups(source, start), _AHEAD * threads)


def _groups(source: Source, start: int) -> Iterator[list[Item | Exception]]:
    """Images from a place on, a few at a time."""
    group: list[Item | Exception] = []
    for place in range(start, len(source)):
        group.append(read_item(source, place))
        if len(group) == _GROUP or sum(map(_in_memory, group)) >= _GROUP_BYTES:
            yield group
            group = []
    if group:
        yield group


def _in_memory(item: Item | Exception) -> int:
    """Bytes that an image takes before it is decoded."""
    if isinstance(item, Image.Image):
        return item.width * item.height * len(item.getbands())
    return len(item) if isinstance(item, bytes) else int(getattr(item, "nbytes", 0))


def read_item(source: Source, place: int) -> Item | Exception:
    """One image as its source has it, or what is wrong with it."""
    try:
        return source.read(place)
    except Exception as error:  # Whatever is wrong with one image must not stop the others.
        return error


def outcome_of(item: Item | Exception, wanted: Preparation) -> Outcome:
    """An image brought to what is wanted, or the reason why it cannot be."""
    if isinstance(item, Exception):
        return _not_read(item)
    try:
        pixels = decode(item, wanted)
    except Exception as error:  # Decoders of damaged files raise nearly everything.
        return _not_read(error)
    grey = pixels.shape[2] == 1 or (_equal(pixels, 0, 1) and _equal(pixels, 0, 2))
    return Outcome(pixels, content_hash(pixels), grey, "")


def _not_read(error: Exception) -> Outcome:
    require_means(error)
    return Outcome(None, b"", False, _reason(error), is_passing(error))


def _equal(pixels: Bytes, one: int, other: int) -> bool:
    """Whether two channels are the same."""
    return np.array_equal(pixels[..., one], pixels[..., other])


def _reason(error: Exception) -> str:
    """What is wrong, in a line; Pillow names its own buffer where there is no file name."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if "cannot identify image file" in text:
        text = "not an image of a known format"
    return " ".join(text.split())[:_LONGEST_REASON] or type(error).__name__
