"""What the shell offers when a word is begun: names that exist. Nothing but the settings waits for torch."""

from collections.abc import Iterator
from typing import Any

import typer


def methods() -> Iterator[tuple[str, str]]:
    """Methods, with what they learn."""
    from dccm.methods import METHODS, method_facts

    yield from ((name, method_facts(name).learns) for name in METHODS)


def presets(ctx: typer.Context) -> Iterator[str]:
    """Presets of the method that stands in the line already."""
    from dccm.config import read_presets
    from dccm.methods import METHODS

    method = _method(ctx)
    yield from read_presets(method) if method in METHODS else ()


def datasets() -> Iterator[str]:
    """Data sets by name."""
    from dccm.data.datasets import DATASETS

    yield from DATASETS


def encoders() -> Iterator[tuple[str, str]]:
    """Encoders, with how much there is to them."""
    from dccm.networks.encoders import ENCODERS, SCRATCH

    yield SCRATCH, "from these images alone"
    yield from ((kind.example, kind.size) for kind in ENCODERS.values())


def settings(ctx: typer.Context) -> Iterator[str]:
    """Settings of the method in the line, ready for a value."""
    from dccm.errors import UserError

    try:
        yield from (f"{name}=" for name in _settings(_method(ctx)))
    except UserError:  # The method is no method; the command says so when it is run.
        return


def targets() -> Iterator[str]:
    """Tables and figures."""
    from dccm.experiments import GROUPS, target_names

    yield from (*target_names(), *GROUPS)


def formats() -> Iterator[str]:
    """Formats that a run can be written in."""
    from dccm.exporting import format_names

    yield from format_names()


def _settings(method: str) -> dict[str, Any]:
    from dccm.runs.config import make_config

    return make_config(method).settings()


def _method(ctx: typer.Context) -> str:
    given: str = ctx.params.get("method") or "dccm"
    return given
