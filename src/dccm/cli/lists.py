"""Commands that list what there is to choose from."""

from typing import Annotated

import typer

from dccm.cli import completion as complete
from dccm.cli import options as option
from dccm.cli.app import app


@app.command(epilog="Example: dccm methods --json")
def methods(as_json: option.Json = False) -> None:
    """List the methods. Year, what they take and learn, rough cost, citation."""
    from dccm.commands.lists import list_methods
    from dccm.printing import print_table

    print_table(list_methods(), as_json)


@app.command(epilog="Example: dccm datasets")
def datasets(as_json: option.Json = False) -> None:
    """List the data sets that are read by name. Those of the paper and two more, with licence and citation."""
    from dccm.data.datasets import DATASETS
    from dccm.printing import print_table

    print_table([{"name": name} | row._asdict() for name, row in DATASETS.items()], as_json)


@app.command(epilog="Example: dccm presets paper --dataset cifar10")
def presets(
    preset: Annotated[
        str | None, typer.Argument(metavar="PRESET", help="Show all settings of it.", autocompletion=complete.presets)
    ] = None,
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="For this data set.", autocompletion=complete.datasets)
    ] = "",
    method: option.Method = "dccm",
    as_json: option.Json = False,
) -> None:
    """List the presets, or all settings of one."""
    from dccm.commands.lists import list_presets, list_settings
    from dccm.printing import print_table

    print_table(list_settings(method, preset, dataset) if preset else list_presets(method), as_json)
