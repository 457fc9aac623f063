"""The command that writes a run down for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from dccm.cli import completion as complete
from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import watched
from dccm.exporting import format_names

_FORMATS = ", ".join(format_names())


@app.command(epilog="Example: dccm export clusters --to csv -o clusters.csv")
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or output folder of dccm predict.")],
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", autocompletion=complete.formats, help=f"One of {_FORMATS}.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="File or folder; else named after RUN.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Text as it is, also what spreadsheets run as formulas.")
    ] = False,
    embedding: Annotated[
        bool | None, typer.Option("--embedding/--no-embedding", help="Deep features; else as is usual.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(metavar="FILE", help="True labels, as for evaluate.")] = None,
    images: Annotated[
        str | None, typer.Option("--images", metavar="IMAGES", help="Where they are now; else where the run got them.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file, or the folder of an earlier export.")
    ] = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Write a run for other programs, as corrected. Tables, folders, data sets, the model."""
    from dccm.commands.export import export
    from dccm.printing import print_exported

    with watched(quiet, "Nothing was left behind: the same command begins anew.") as display:
        exported = export(
            run,
            to,
            output,
            plain=plain,
            embedding=embedding,
            labels=labels,
            images=images,
            overwrite=overwrite,
            watcher=display,
        )
    print_exported(exported, as_json)
