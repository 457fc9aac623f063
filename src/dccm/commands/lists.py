"""What there is to choose from: rows of a table, each a dictionary of its columns."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dccm.config import read_presets
from dccm.methods import METHODS
from dccm.methods.base import Clusterer
from dccm.networks.pretrained import ENCODERS, SCRATCH, Kind, kind_of, open_encoder
from dccm.runs.config import make_config
from dccm.runs.speeds import known_speeds, measure_encoder

Rows = list[dict[str, Any]]


def list_methods() -> Rows:
    """The methods: year, what they take and learn, rough cost, citation."""
    return [
        {"method": name, "year": kind.year, "takes": _takes(kind)}
        | {"learns": kind.learns, "cost": kind.cost, "citation": kind.citation}
        for name, kind in METHODS.items()
    ]


def _takes(kind: type[Clusterer[Any]]) -> str:
    if kind.needs_vectors:
        return "vectors"
    return "images, vectors" if kind.takes_vectors else "images"


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
    settings = make_config(method, preset, dataset).settings()
    return [{"setting": name, "value": value} for name, value in settings.items()]
