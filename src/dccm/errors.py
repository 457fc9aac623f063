"""The one exception for what a user can cause, the words that help out of it, and names as they may be shown."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_BEGIN, _END = 1200, 400
"""Characters of a sentence that are kept where a value in it has no end."""


class UserError(ValueError):
    """A mistake in what the user gave: one sentence with the setting, the rule, the value and the way out.

    Args:
        message: The sentence; the middle of one that nobody would read is left out.
    """

    def __init__(self, message: str) -> None:
        message = visible(message)
        whole = len(message) <= _BEGIN + _END
        super().__init__(message if whole else f"{message[:_BEGIN]} ... {message[-_END:]}")


_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]")
"""Characters that move a cursor, begin a line, turn the direction of reading, or are no text."""


def visible(text: str, keep: str = "") -> str:
    """Text in which nothing acts on a terminal or page: names of files may hold anything, also what forges a line.

    Args:
        text: What is to be shown.
        keep: Characters that are meant, such as a line feed between sentences of ours.
    """
    return _ACTING.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    code = ord(character)
    return short.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def counted(count: int, what: str) -> str:
    """So many of something: "1 file", "2 files"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


_LONGEST = 200
"""Characters of a name that is not known, as an error shows it."""


def require(condition: bool, message: str) -> None:
    """Raise `UserError(message)` unless the condition holds."""
    if not condition:
        raise UserError(message)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence fragment that names the closest known word, or nothing when none is close."""
    close = get_close_matches(short(name), list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


def short(name: str) -> str:
    """A name as an error shows it, whoever thought of it."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."


def choose(name: str, known: Iterable[str], what: str, see: str) -> str:
    """Return `name` if it is known, else say which name was probably meant."""
    names, shown = list(known), short(name)
    require(name in names, f"No {what} '{shown}'.{did_you_mean(name, names)} See \"{see}\".")
    return name
