"""The command that runs the paper again."""

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import goes_on_by_itself
from dccm.errors import require
from dccm.experiments import GROUPS, target_names

_TARGETS = f"{', '.join(target_names())}; all: those of the paper; beyond: the others."


@app.command(
    epilog="Example: dccm reproduce table3 --datasets cifar10 --limit-images 10000 --budget passes:40 --seeds 0,1"
)
def reproduce(
    targets: Annotated[list[str], typer.Argument(help=_TARGETS, metavar="TABLE|FIGURE|" + "|".join(GROUPS))],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of all results; the same command goes on in it.")
    ] = Path("dccm-results"),
    budget: Annotated[
        str, typer.Option(metavar="full|minutes:M|passes:P", help="Of each run; full: the paper's schedule, for a GPU.")
    ] = "full",
    seeds: Annotated[str, typer.Option(metavar="0,1,2", help="Each run is made with each of them.")] = "0",
    datasets: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|NAME=PATH", help="In place of the paper's; several by commas, or repeated."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PRESET]", help="Of those of a table or figure; several by commas."),
    ] = None,
    settings: option.Sets = None,
    limit_images: Annotated[int | None, typer.Option(help="Draw so many from each data set.")] = None,
    data_root: Annotated[
        Path | None, typer.Option(help="Folder with the official files of data sets; nothing is downloaded.")
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", help="Runs at a time.")] = 1,
    engine: Annotated[str, typer.Option(help="processes of this machine, or ray.")] = "processes",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make runs again that failed before.")] = False,
    print_commands: Annotated[
        bool, typer.Option("--print-commands", help="Run nothing: print one command for each run that is left.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="This run alone, and no tables; --print-commands says which."),
    ] = None,
    estimate: Annotated[bool, typer.Option(help="Measure first what it will cost.")] = True,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Run what the paper ran, and set the results beside its tables and figures; finished runs are never repeated."""
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


def _words(given: list[str] | None) -> list[str]:
    """Words that were repeated, or parted by commas; a comma within a path parts nothing."""
    return [word for part in given or [] for word in re.split(r",(?=[\w:-]+(?:[=,]|$))", part) if word]


def _numbers(text: str) -> tuple[int, ...]:
    plain = all(word.strip().isdigit() for word in text.split(","))
    require(plain, f"seeds must be whole numbers parted by commas, such as 0,1,2, got '{text}'.")
    return tuple(dict.fromkeys(int(word) for word in text.split(",")))
