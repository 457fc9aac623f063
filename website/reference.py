"""The reference of commands and of Python, made from the program itself."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

import dccm
from dccm.cli import app


def commands() -> str:
    """A page of all commands: what each does, takes and shows as an example."""
    lines = ["# Commands", "", "Made from the program; `dccm COMMAND -h` says the same.", ""]
    for name, command in _flat("dccm", get_command(app)):
        lines += [f"## {name}", "", _text(command.help), "", "```sh", _usage(name, command), "```", ""]
        rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
        lines += ["| | |", "|---|---|", *filter(None, rows), ""]
        if command.epilog:
            lines += [_text(command.epilog).replace("Example: ", "Example: `", 1) + "`", ""]
    return "\n".join(lines)


def python() -> str:
    """A page of all public names, filled from their docstrings."""
    names = [name for name in dccm.__all__ if not name.startswith("__")]
    parts = [f"::: dccm.{name}\n" for name in names]
    return "\n".join(
        ["# Python", "", "Everything that `import dccm` offers; [how it is used](../python.md).", "", *parts]
    )


def _flat(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command below one, with its full name."""
    if hasattr(command, "commands"):
        for word, below in sorted(command.commands.items()):
            yield from _flat(f"{name} {word}", below)
    else:
        yield name, command


def _usage(name: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    return " ".join([name, *map(_metavar, arguments), "[OPTIONS]"])


def _metavar(argument: Any) -> str:
    word = argument.metavar or argument.name.upper()
    return f"{word}..." if argument.nargs != 1 else str(word)


def _row(parameter: Any) -> str:
    """A line of the table; nothing for what only the shell asks for."""
    if parameter.param_type_name == "argument":
        return f"| `{_text(_metavar(parameter))}` | {_text(parameter.help)} |"
    if not parameter.help:
        return ""
    names = ", ".join(f"`{name}`" for name in sorted(parameter.opts, key=len))
    value = f" `{_text(parameter.metavar)}`" if parameter.metavar else ""
    return f"| {names}{value} | {_text(parameter.help)} |"


def _text(words: str | None) -> str:
    """One line that a table takes."""
    return " ".join((words or "").split()).replace("|", r"\|").replace("<", "&lt;")
