"""The command that suggests a number of clusters."""

from typing import Annotated

import typer

from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import watched


@app.command(name="choose-k", epilog="Example: dccm choose-k photos/ --encoder efficientnet-lite0")
def choose_k(
    images: option.Images,
    clusters: Annotated[
        str, typer.Option("-k", "--clusters", metavar="auto|5..30", help="Numbers to choose from.")
    ] = "auto",
    encoder: option.AnyEncoder = None,
    output: option.Output = None,
    settings: option.Sets = None,
    seed: option.Seed = None,
    image_size: Annotated[int | None, typer.Option(metavar="PIXELS", help="Side to which images are brought.")] = None,
    split: option.Split = "",
    variant: option.Variant = "",
    data_root: option.DataRoot = None,
    cache: option.Cache = None,
    workers: option.Workers = None,
    device: option.Device = None,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Suggest how many clusters there are. With a runner-up and how sure that is; no label is looked at."""
    from dccm.commands.choose_k import choose_k
    from dccm.config import parse_assignments
    from dccm.printing import print_chosen

    with watched(quiet) as display:
        chosen = choose_k(
            option.one_or_several(images),
            clusters,
            output=output,
            encoder=encoder,
            settings=parse_assignments(settings or []),
            seed=seed,
            image_size=image_size,
            device=device,
            split=split,
            variant=variant,
            data_root=data_root,
            cache=cache,
            workers=workers,
            watcher=display,
        )
    print_chosen(chosen, as_json)
