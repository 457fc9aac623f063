"""The command that judges a run without labels."""

from pathlib import Path
from typing import Annotated

import typer

from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import watched


@app.command(epilog="Example: dccm judge clusters --again")
def judge(
    run: option.Run,
    other: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="Run of the same images, with another seed.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Make such a run first; takes as long as RUN did.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="For that run.")] = None,
    cache: option.Cache = None,
    device: option.AnyDevice = "auto",
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Say without labels how far clusters can be trusted. Each measure says what it cannot say."""
    from dccm.commands.judge import judge
    from dccm.printing import print_judged

    with watched(quiet) as display:
        judged = judge(run, other, again=again, output=output, device=device, cache=cache, watcher=display)
    print_judged(judged, as_json)
