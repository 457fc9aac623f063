"""Whether files of the cache are what was written: sizes and times each time, checksums once for each state of them."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from dccm.documents import UNREADABLE, read_json
from dccm.files import write_atomically

HEAD = 128
"""Bytes of the head of an .npy file of the cache; it has no checksum, as it is compared with what is known."""
_PIECE = 1 << 20


def is_unharmed(folder: Path, checksums: Mapping[str, str], files: Iterable[str], *, thorough: bool = False) -> bool:
    """Whether the files of a folder of the cache are what was written.

    Reading all of them takes a second per gigabyte, so it is done once for each state of the files.

    Args:
        folder: The folder; `checked.json` in it keeps their state when they were last compared.
        checksums: crc32 of each, in hexadecimal digits, as the manifest has them.
        files: Their names.
        thorough: Compare checksums even if sizes and times are as they were: disks forget.
    """
    state = {name: [(folder / name).stat().st_size, (folder / name).stat().st_mtime_ns] for name in files}
    if not thorough and state == _checked(folder):
        return True
    wanted = {name: int(value, 16) for name, value in checksums.items()}
    if wanted != {name: checksum(folder / name, size) for name, (size, _) in state.items()}:
        (folder / "checked.json").unlink(missing_ok=True)  # Whoever opens them next compares too.
        return False
    with suppress(ValueError):  # A cache that cannot be written to is checked each time.
        write_atomically(folder / "checked.json", json.dumps(state) + "\n")
    return True


def _checked(folder: Path) -> object:
    """The state of the files that were last found unharmed."""
    try:
        return read_json(folder / "checked.json")
    except UNREADABLE:
        return None


def checksum(path: Path, size: int) -> int | None:
    """The checksum of the first bytes of a file, behind its head if it has one; None if there are fewer."""
    left, value = size, 0
    with path.open("rb") as file:
        if path.suffix == ".npy":
            left -= len(file.read(HEAD))
        while left > 0 and (content := file.read(min(left, _PIECE))):
            left -= len(content)
            value = crc32(content, value)
    return None if left else value
