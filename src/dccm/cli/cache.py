"""Commands about the cache."""

from typing import Annotated

import typer

from dccm.cli import options as option
from dccm.cli.app import app

cache_app = typer.Typer(
    no_args_is_help=True,
    help="Look after what is kept for later runs. Prepared images and features: sizes, lists, checks, clearing.",
)
app.add_typer(cache_app, name="cache")

Keys = Annotated[list[str] | None, typer.Argument(help='Beginnings of keys of "dccm cache list"; none: all.')]


@cache_app.command(epilog="Example: dccm cache size")
def size(cache: option.Cache = None, as_json: option.Json = False) -> None:
    """Say how much there is of each kind."""
    from dccm.commands.cache import list_sizes
    from dccm.printing import print_table

    print_table(list_sizes(cache), as_json)


@cache_app.command("list", epilog="Example: dccm cache list")
def list_(cache: option.Cache = None, as_json: option.Json = False) -> None:
    """List prepared images and features."""
    from dccm.commands.cache import list_kept
    from dccm.printing import print_table

    print_table(list_kept(cache), as_json)


@cache_app.command(epilog="Example: dccm cache check")
def check(keys: Keys = None, cache: option.Cache = None, as_json: option.Json = False) -> None:
    """Compare every byte with its checksum; exit code 1 if anything is damaged. The next run makes it anew."""
    from dccm.commands.cache import check_kept
    from dccm.printing import print_table

    rows = check_kept(keys or [], cache)
    print_table(rows, as_json)
    if any(row["state"] == "damaged" for row in rows):
        raise typer.Exit(1)


@cache_app.command(epilog="Example: dccm cache clear 3f2a")
def clear(keys: Keys = None, cache: option.Cache = None, as_json: option.Json = False) -> None:
    """Delete prepared images and features; later runs make them anew. Weights and downloads stay."""
    from dccm.commands.cache import clear_kept
    from dccm.printing import print_outcome

    cleared = clear_kept(keys or [], cache)
    print_outcome(cleared._asdict(), cleared.sentence(), as_json)
