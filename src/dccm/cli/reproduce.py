"""The command that runs the paper again."""

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dccm.cli import completion as complete
from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import goes_on_by_itself
from dccm.errors import require, short
from dccm.experiments import GROUPS, target_names

_TARGETS = f"{', '.join(target_names())}; all: those of the paper; beyond: the others."


@app.command(
    epilog="Example: dccm reproduce table3 --datasets cifar10 --limit-images 10000 --budget passes:40 --seeds 0,1"
)
def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(help=_TARGETS, metavar="TABLE|FIGURE|" + "|".join(GROUPS), autocompletion=complete.targets),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="The same command goes on in it.")
    ] = Path("dccm-results"),
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="Of each run: full (a GPU), minutes:M, passes:P.")
    ] = "full",
    seeds: Annotated[str, typer.Option(metavar="0,1,2", help="Each run is made with each.")] = "0",
    datasets: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|NAME=PATH", help="In place of the paper's.", autocompletion=complete.datasets),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PRESET]", help="Of those of a table.", autocompletion=complete.methods),
    ] = None,
    settings: option.Sets = None,
    limit_images: Annotated[int | None, typer.Option(metavar="N", help="Draw so many from each data set.")] = None,
    data_root: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Official files; nothing is downloaded.")
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", metavar="N", help="Runs at a time.")] = 1,
    engine: Annotated[str, typer.Option(metavar="NAME", help="processes of this machine, or ray.")] = "processes",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make runs again that failed before.")] = False,
    print_commands: Annotated[
        bool, typer.Option("--print-commands", help="Print one command for each run, run nothing.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="This run alone; --print-commands says which."),
    ] = None,
    estimate: Annotated[bool, typer.Option(help="Measure first what it will cost.")] = True,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Run the paper again, table by table. Results stand beside its own; finished runs are never repeated."""
    from dccm.cli.live import GridView
    from dccm.commands import reproduce as command
    from dccm.config import parse_assignments
    from dccm.printing import print_reproduced

    planning: dict[str, Any] = {
        "budget": budget,
        "seeds": _numbers(seeds),
        "datasets": _words(datasets),
        "methods": _words(methods),
        "settings": parse_assignments(settings or []),
        "limit_images": limit_images,
        "data_root": data_root,
    }
    if print_commands:
        lines = command.command_lines(targets, output=output, retry_failed=retry_failed, **planning)
        print("\n".join(lines))
        return
    with goes_on_by_itself(), GridView(quiet, jobs) as view:
        reproduced = command.reproduce(
            targets,
            output=output,
            jobs=jobs,
            engine=engine,
            retry_failed=retry_failed,
            only=only or (),
            estimate=estimate,
            observer=view,
            watcher=view,
            **planning,
        )
    print_reproduced(reproduced, as_json)
    if not reproduced.complete:
        sys.exit(1)


_DIGITS = 20
"""Of a seed; `Request` says how large it may be."""


def _words(given: list[str] | None) -> list[str]:
    """Words that were repeated, or parted by commas; a comma within a path parts nothing."""
    return [word for part in given or [] for word in re.split(r",(?=[\w:-]+(?:[=,]|$))", part) if word]


def _numbers(text: str) -> tuple[int, ...]:
    plain = all(word.strip().isdecimal() and len(word) < _DIGITS for word in text.split(","))
    require(plain, f"seeds must be whole numbers parted by commas, such as 0,1,2, got '{short(text)}'.")
    return tuple(dict.fromkeys(int(word) for word in text.split(",")))
