"""Names of files and folders that every system takes, made of names that people or strangers gave."""

import re
import unicodedata
from itertools import count

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]')
"""What some system forbids, what is no text, and what turns the direction of reading."""
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)", re.IGNORECASE)
"""Devices of Windows, with any suffix."""
_ACTING = ("-", "+", "=", "@", "~", "'")
"""Beginnings that mean something to a shell, or to a spreadsheet."""
_LONGEST = 120
"""Bytes; systems take 255, and a number and a suffix may follow."""


def safe_name(text: str) -> str:
    """A name of one file or folder, without its suffix, that means the same everywhere and leads nowhere else."""
    name = unicodedata.normalize("NFC", _FORBIDDEN.sub("_", text))
    name = _shortened(name.strip()).rstrip(". ")
    if not name or name.startswith("."):  # Hidden, or one folder up.
        name = f"_{name.lstrip('.')}"
    return f"_{name}" if _RESERVED.match(name) or name.startswith(_ACTING) else name


def _shortened(name: str) -> str:
    """As many whole characters as fit."""
    return name.encode("utf-8")[:_LONGEST].decode("utf-8", errors="ignore")


class FreeNames:
    """Hands out names, each once, also where large and small letters are the same; the same calls, the same names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, wanted: str, suffix: str = "") -> str:
        """A name like the wanted one; a number follows where that was taken."""
        stem = safe_name(wanted)
        for number in count(self._next.get(_key(stem + suffix), 1)):
            name = f"{stem} ({number}){suffix}" if number > 1 else stem + suffix
            if _key(name) not in self._taken:
                self._taken.add(_key(name))
                self._next[_key(stem + suffix)] = number + 1
                return name
        raise AssertionError("Numbers do not end.")


def _key(name: str) -> str:
    """What a system may take two names for the same by."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
