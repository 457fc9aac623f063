"""Small pictures, and a look at what became of them, for the tests of the data layer."""

import csv
import io
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt
from PIL import Image

from dccm.data.decode import Preparation, decode
from dccm.data.sources.base import Source

Pixels = npt.NDArray[np.uint8]
Made = TypeVar("Made")


def noise(number: int = 0, side: int = 24) -> Pixels:
    """A colour picture that no other number gives."""
    return np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8)


def encoded(picture: npt.NDArray[Any] | Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The bytes of an image file."""
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def png(number: int = 0, side: int = 24) -> bytes:
    """The bytes of a PNG file that no other number gives."""
    return encoded(noise(number, side))


def headed(width: int, height: int) -> bytes:
    """A PNG file of some bytes that says it has so many pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + head + struct.pack(">I", crc32(head))
    return b"\x89PNG\r\n\x1a\n" + chunk + png()[33:]


def put(path: Path, content: bytes | bytearray) -> Path:
    """Write a file, with the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def photos(folder: Path, count: int, side: int = 24) -> Path:
    """A folder of different pictures, `00.png` and so on."""
    for number in range(count):
        put(folder / f"{number:02}.png", png(number, side))
    return folder


def prepared_folder(cache: Path) -> Path:
    """The one folder that a preparation made."""
    (folder,) = (cache / "images").iterdir()
    return folder


def rows(cache: Path) -> list[dict[str, str]]:
    """The manifest of the one preparation in a cache."""
    with (prepared_folder(cache) / "manifest.csv").open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def contents(cache: Path) -> dict[str, bytes | str]:
    """All files of a cache but the one with times in it."""
    return {name: content for name, content in tree(cache).items() if not name.endswith("checked.json")}


def tree(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder: files with their content, links with their target."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = os.fspath(path.relative_to(folder))
        found[name] = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found


def within(seconds: float, action: Callable[[], Made]) -> Made:
    """What an action gives; it fails if that takes longer, as reading a pipe that nobody writes to does."""
    results: list[Made] = []
    thread = threading.Thread(target=lambda: results.append(action()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"still at it after {seconds} seconds"
    assert results, "it failed; see the message of the thread"
    return results[0]


def same_pixels(source: Source, place: int, picture: Pixels) -> bool:
    """Whether a source gives this picture when its own size is asked for."""
    return bool((decode(source.read(place), Preparation(picture.shape[:2])) == picture).all())
