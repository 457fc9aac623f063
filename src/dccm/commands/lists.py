"""What there is to choose from: rows of a table, each a dictionary of its columns; without torch where it can be."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dccm.config import read_presets
from dccm.methods import METHODS, method_facts
from dccm.methods.facts import Facts
from dccm.networks.encoders import ENCODERS, SCRATCH, Kind, kind_of
from dccm.runs.speeds import known_speeds, measure_encoder

Rows = list[dict[str, Any]]


def list_methods() -> Rows:
    """The methods: year, what they take and learn, rough cost, citation."""
    facts = {name: method_facts(name) for name in METHODS}
    return [
        {"method": name, "year": known.year, "takes": _takes(known)}
        | {"learns": known.learns, "cost": known.cost, "citation": known.citation}
        for name, known in facts.items()
    ]


def _takes(known: Facts) -> str:
    if known.needs_vectors:
        return "vectors"
    return "images, vectors" if known.takes_vectors else "images"


def list_encoders(cache: str | Path | None = None) -> Rows:
    """The encoders: size, licence, what they were trained on, images/s where they worked, and whether they are there.

    Args:
        cache: Where is kept how fast they were; None: the user's cache folder.
    """
    columns = ("size", "licence", "trained on", "images/s", "installed")
    speeds = known_speeds(cache)
    own = ("the method's own network, or pixels", "", "your images alone, without labels", None, "yes")
    rows = {SCRATCH: own} | {name: _encoder_row(kind_of(name), speeds.get(name)) for name in _encoder_names(speeds)}
    return [{"encoder": name} | dict(zip(columns, row)) for name, row in rows.items()]


def _encoder_names(used: Iterable[str]) -> list[str]:
    """An example of each kind, and behind it those of the kind that were used here."""
    return [
        name
        for kind, entry in ENCODERS.items()
        for name in dict.fromkeys([entry.example, *(other for other in sorted(used) if other.startswith(kind))])
    ]


def _encoder_row(kind: Kind, speed: float | None) -> tuple[Any, ...]:
    installed = "yes" if kind.installed() else f"no: {kind.get}"
    return kind.size, kind.licence, kind.trained_on, speed, installed


def measure(encoder: str, device: str = "auto", cache: str | Path | None = None) -> None:
    """Find out how fast an encoder is on this machine, in a second or a few; lists show it from then on.

    Args:
        encoder: Its name.
        device: Where to compute.
        cache: Where it is kept; None: the user's cache folder.
    """
    from dccm.networks.pretrained import open_encoder

    measure_encoder(open_encoder(encoder, device, cache), cache)


def list_presets(method: str) -> Rows:
    """The presets of a method, and what each sets for which data set."""
    return [
        {"preset": name, "data set": table or "any", "sets": ", ".join(f"{k}={v}" for k, v in values.items())}
        for name, tables in read_presets(method).items()
        for table, values in tables.items()
    ]


def list_settings(method: str, preset: str, dataset: str) -> Rows:
    """All settings of one preset."""
    from dccm.runs.config import make_config  # It comes with torch, which takes seconds; other lists go without.

    settings = make_config(method, preset, dataset).settings()
    return [{"setting": name, "value": value} for name, value in settings.items()]
