"""Commands about pretrained encoders."""

from typing import Annotated, Any

import typer

from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import watched


@app.command(epilog="Example: dccm embed photos/ --encoder efficientnet-lite0 -o vectors")
def embed(
    images: option.Images,
    encoder: option.Encoder = "efficientnet-lite0",
    output: option.AnyOutput = None,
    image_size: Annotated[int | None, typer.Option(min=8, help="Side to which images are brought before.")] = None,
    split: option.Split = "",
    variant: option.Variant = "",
    data_root: option.DataRoot = None,
    cache: option.Cache = None,
    workers: option.Workers = None,
    processes: option.ByShard = None,
    engine: option.Engine = None,
    device: option.AnyDevice = "auto",
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Write a vector per image by a pretrained encoder. They are kept in the cache for later runs."""
    from dccm.commands.embed import embed
    from dccm.commands.shards import by_shards, embed_shards
    from dccm.printing import print_embedded, print_shards

    given: dict[str, Any] = {"output": output, "image_size": image_size, "device": device}
    given |= {"split": split, "variant": variant, "data_root": data_root, "cache": cache, "workers": workers}
    named = option.one_or_several(images)
    if by_shards(output, engine, processes):
        with watched(quiet) as display:
            done = embed_shards(named, encoder, engine=engine, processes=processes, watcher=display, **given)
        print_shards(done, as_json)
        return
    with watched(quiet) as display:
        embedded = embed(named, encoder, watcher=display, **given)
    print_embedded(embedded, as_json)


@app.command(epilog="Example: dccm encoders --measure efficientnet-lite0")
def encoders(
    measured: Annotated[
        str | None, typer.Option("--measure", metavar="NAME", help="First find out how fast this one is here.")
    ] = None,
    cache: option.Cache = None,
    device: option.AnyDevice = "auto",
    as_json: option.Json = False,
) -> None:
    """List the encoders. Size, licence, what they were trained on, images/s here, and how to get them.

    Images/s are of the last time that features were computed, or of --measure.
    """
    from dccm.commands.lists import list_encoders, measure
    from dccm.printing import print_table

    if measured is not None:
        measure(measured, device, cache)
    print_table(list_encoders(cache), as_json)
