"""What there is to choose from: rows of a table, each a dictionary of its columns."""

from typing import Any

from dccm.config import read_presets
from dccm.methods import METHODS
from dccm.runs.config import make_config

Rows = list[dict[str, Any]]


def list_methods() -> Rows:
    """The methods: year, what they learn, rough cost, citation."""
    fields = ("year", "learns", "cost", "citation")
    return [{"method": name} | {key: getattr(kind, key) for key in fields} for name, kind in METHODS.items()]


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
