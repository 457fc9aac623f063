"""Processes that are about to train together compare what they were given, and tell each other what went wrong."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch

import dccm
from dccm.errors import UserError
from dccm.launched import Launched
from dccm.training.together import SeveralWorkers, Team

_ERROR = "error"


class PatientTeam(Team, Protocol):
    """A team that can do both: wait for a process that reads images, and notice one that hangs."""

    def quickly(self) -> Any:
        """A context in which nobody is waited for for long."""

    def speaks(self) -> bool:
        """Whether this process is the first to have something to say at the end."""


class Agreeing(SeveralWorkers):
    """Workers that stop together, each time they meet, if one of them has to.

    Args:
        team: What connects them.
        told: Who this process is.
    """

    def __init__(self, team: PatientTeam, told: Launched) -> None:
        super().__init__(team)
        self.patient_team, self.told = team, told
        self.meets = True
        """Whether the others will come to a meeting, and do not train or end before it."""
        self.one_reason = False
        """Whether all end, and for the same reason."""

    def agree(self, **noted: Any) -> None:
        """Wait until all have come this far; refuse to go on if one could not, or if what they note differs.

        Args:
            **noted: What must be the same everywhere; an object is compared name by name.
        """
        self.meets = False  # If this fails, it fails for all.
        versions = {"version of dccm": dccm.__version__, "version of torch": torch.__version__}
        notes = self.gather_values([self.told.name, versions | noted])
        if sentence := disagreement(notes):
            self.one_reason = True
            raise UserError(sentence)
        self.meets = True

    def tell(self, error: str) -> tuple[str, bool]:
        """Let the others know, if they will ask, why this process cannot go on.

        Returns:
            What the user should read, and whether all processes know it.
        """
        if not self.meets:
            return error, self.one_reason
        try:
            self.agree(error=error)
        except UserError as joint:
            return str(joint), True
        return error, False

    @contextmanager
    def training(self) -> Iterator[None]:
        """Nobody waits long for another one here."""
        self.meets = False
        with self.patient_team.quickly():
            yield
        self.meets = True

    def part(self) -> None:
        """Wait until all have come to the end."""
        self.agree()
        self.meets = False


def disagreement(notes: Sequence[tuple[str, Mapping[str, Any]]]) -> str | None:
    """Why processes cannot train together, in a sentence that names the one that is to blame; None: they can.

    Args:
        notes: The name of each, the first one's first, and what it noted.
    """
    errors = [note.get(_ERROR) for _, note in notes]
    if any(errors):
        if len(set(errors)) == 1:
            return str(errors[0])
        [(name, error), *_] = [(name, note[_ERROR]) for name, note in notes if note.get(_ERROR)]
        return f"In {name}: {error}"
    first_name, first = notes[0]
    for name, note in notes[1:]:
        for key in sorted(set(first) | set(note)):
            if first.get(key) != note.get(key):
                what, one, other = _difference(key, first.get(key), note.get(key))
                return (
                    f"All processes must have the same {what}, and {first_name} has {one}, {name} has {other}. "
                    "Begin all of them with the same command, on the same images and with the same dccm."
                )
    return None


def _difference(key: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(set(one) | set(other)):
            if one.get(name) != other.get(name):
                return f"{key}, such as {name}", one.get(name), other.get(name)
    return key, one, other
