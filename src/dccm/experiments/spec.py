"""One run of a grid, described so that equal runs of different tables are the same run."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dccm.config import Settings

_DIGITS = 12
"""Of the hash in a key: enough for any number of runs that anybody will make."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """All that decides what a run turns out to be. `Request.spec` makes one that is written in one way only."""

    method: str
    dataset: str
    """As in `--datasets`: a name of "dccm datasets", or the name that was given to a path."""
    seed: int = 0
    preset: str = "paper"
    settings: tuple[tuple[str, Any], ...] = ()
    """What differs from the preset, by name and in alphabetical order."""
    budget: str = ""
    """`minutes:M` or `passes:P`; empty: the schedule of the preset."""
    limit: int | None = None
    """Images that are drawn from the data set; None: all."""
    split: str = ""
    """`train`: the test images are left to a probe; empty: all images."""
    variant: str = ""
    """Of the data set: other classes than those that the paper clusters."""
    after: tuple[tuple[str, "RunSpec"], ...] = field(default=())
    """Settings that want the folder of another run, and that run, which is made before."""

    @property
    def key(self) -> str:
        """The name of the run's folder: the same for equal runs, on every machine and in every version."""
        words = f"{self.method}-{self.dataset}-s{self.seed}"
        digest = hashlib.sha256(json.dumps(self.document(), sort_keys=True).encode()).hexdigest()
        return f"{words}-{digest[:_DIGITS]}"

    def document(self) -> dict[str, Any]:
        """The description as JSON has it; what is left out does not count, so that new fields change no key."""
        plain = {name: value for name, value in asdict(self).items() if value not in ("", None, ())}
        plain["settings"] = dict(self.settings)
        plain["after"] = {name: other.key for name, other in self.after}
        return plain

    def label(self) -> str:
        """The run in a few words, for people."""
        words = [self.method, f"on {self.dataset}"] + [f"{name}={value}" for name, value in self.settings]
        words += [f"split {self.split}"] * bool(self.split) + [f"variant {self.variant}"] * bool(self.variant)
        return " ".join([*words, f"seed {self.seed}"])


def frozen(settings: Mapping[str, object]) -> tuple[tuple[str, Any], ...]:
    """Settings in the one order that keys know; lists become tuples."""
    plain: Settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    return tuple(sorted(plain.items()))
