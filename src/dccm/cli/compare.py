"""The command that compares two runs."""

from pathlib import Path
from typing import Annotated

import typer

from dccm.cli import options as option
from dccm.cli.app import app


@app.command(epilog="Example: dccm compare clusters other-clusters")
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Run directory of the same images.")],
    labels: Annotated[Path | None, typer.Option(metavar="FILE", help="True labels, as for evaluate.")] = None,
    as_json: option.Json = False,
) -> None:
    """Say how far two runs agree. ARI and NMI between them, which clusters match, which images moved."""
    from dccm.commands.compare import compare
    from dccm.printing import print_compared

    print_compared(compare(first, second, labels), as_json)
