"""The command that writes a run down for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import watched
from dccm.exporting import format_names

_FORMATS = ", ".join(format_names())


def _completed(begun: str) -> list[str]:
    return [name for name in format_names() if name.startswith(begun)]


@app.command(epilog="Example: dccm export clusters --to csv -o clusters.csv")
def export(
    run: Annotated[Path, typer.Argument(help="Run directory, or output folder of dccm predict.")],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", autocompletion=_completed, help=f"One of {_FORMATS}.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File or folder to be made; default named after the run.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Text as it is, also where a spreadsheet would take it for a formula.")
    ] = False,
    embedding: Annotated[
        bool | None, typer.Option("--embedding/--no-embedding", help="The deep features; default as is usual for it.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="True classes, as for evaluate.")] = None,
    images: Annotated[
        str | None, typer.Option("--images", help="Where the images are now; default where the run got them.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file, or the folder of an earlier export.")
    ] = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Write a run, as corrected, for other programs: tables, folders, data sets, the model."""
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
