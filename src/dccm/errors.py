"""The one exception for what a user can cause, and the words that help out of it."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A mistake in what the user gave: one sentence with the setting, the rule, the value and the way out."""


def require(condition: bool, message: str) -> None:
    """Raise `UserError(message)` unless the condition holds."""
    if not condition:
        raise UserError(message)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence fragment that names the closest known word, or nothing when none is close."""
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


def choose(name: str, known: Iterable[str], what: str, see: str) -> str:
    """Return `name` if it is known, else say which name was probably meant."""
    names = list(known)
    require(name in names, f"No {what} '{name}'.{did_you_mean(name, names)} See \"{see}\".")
    return name
