"""What there is to choose from: rows of a table, each a dictionary of its columns."""

from typing import Any

from dccm.config import read_presets
from dccm.methods import METHODS
from dccm.methods.base import Clusterer
from dccm.networks.pretrained import ENCODERS, SCRATCH
from dccm.runs.config import make_config

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


def list_encoders() -> Rows:
    """The encoders: size, licence, what they were trained on, and whether they are there."""
    columns = ("size", "licence", "trained on", "installed")
    own = ("the method's own network, or pixels", "", "your images alone, without labels", "yes")
    rows = {SCRATCH: own} | {
        kind.example: (kind.size, kind.licence, kind.trained_on, "yes" if kind.installed() else f"no: {kind.get}")
        for kind in ENCODERS.values()
    }
    return [{"encoder": name} | dict(zip(columns, row)) for name, row in rows.items()]


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
