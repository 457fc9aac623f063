"""The commands to look at a run and to correct it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import stop_with

_MOST_LINES = 256 * 1024 * 1024
"""Bytes of corrections that are taken over."""


@app.command(epilog="Example: dccm serve clusters")
def serve(
    run: option.Run,
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine need --allow-remote.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; default 8765, or the next free one.")
    ] = None,
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="Let other machines in, unencrypted.")] = False,
    tsne: Annotated[
        bool, typer.Option("--tsne", help="A map by t-SNE, once it is computed; that takes minutes.")
    ] = False,
    who: Annotated[str, typer.Option(help="In whose name changes are logged; default your user name.")] = "",
) -> None:
    """Look at the clusters in the browser and correct them. Move, merge, split, name, mark, undo."""
    from dccm.commands.serve import serve
    from dccm.gallery.server import REMOTE, is_loopback

    def ready(address: str) -> None:
        if not is_loopback(host):
            print(REMOTE.format(host=host), file=sys.stderr)
        print(f"{address}\nOpen this address in a browser; Ctrl-C ends.", flush=True)

    try:
        serve(run, host=host, port=port, allow_remote=allow_remote, who=who, arranged=tsne, ready=ready)
    except KeyboardInterrupt:
        stop_with("All corrections are kept.")


@app.command(epilog="Example: dccm corrections clusters --export corrections.jsonl")
def corrections(
    run: option.Run,
    export: Annotated[str | None, typer.Option("--export", metavar="FILE", help="Write them; - prints them.")] = None,
    take: Annotated[Path | None, typer.Option("--import", metavar="FILE", help="Add those of a file.")] = None,
    as_json: option.Json = False,
) -> None:
    """Write or take over corrections. As lines of JSON, also those of another run on the same images."""
    from dccm.commands.corrections import export_corrections, import_corrections
    from dccm.documents import read_small
    from dccm.errors import UserError, counted, require
    from dccm.files import write_atomically
    from dccm.printing import print_outcome

    require((export is None) != (take is None), "Say either --export FILE or --import FILE.")
    if take is not None:
        try:
            lines = read_small(take, _MOST_LINES).decode("utf-8").split("\n")
        except (OSError, ValueError) as error:
            raise UserError(f"{take} cannot be read ({error}). Give what --export wrote.") from error
        taken = import_corrections(run, lines)
        print_outcome({"changes": taken}, f"{counted(taken, 'change')} taken over.", as_json)
    elif export == "-":
        sys.stdout.writelines(export_corrections(run))
    else:
        written = list(export_corrections(run))
        write_atomically(Path(str(export)), "".join(written))
        print_outcome({"changes": len(written)}, f"{counted(len(written), 'change')} written to {export}.", as_json)
