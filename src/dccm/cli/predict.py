"""Later images, by a model that is there already."""

from typing import Any

from dccm.cli import options as option
from dccm.cli.app import app
from dccm.cli.interruption import watched


@app.command(epilog="Example: dccm predict clusters new-photos/ -o new-assignments")
def predict(
    model: option.ModelFolder,
    images: option.Images,
    output: option.AnyOutput = None,
    reject: option.Reject = None,
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
    """Put new images into the clusters of a run. With confidence; as CSV, or into a folder with -o."""
    from dccm.commands.predict import predict
    from dccm.commands.shards import by_shards, predict_shards
    from dccm.printing import print_predicted, print_shards

    given: dict[str, Any] = {"output": output, "reject": reject, "device": device}
    given |= {"split": split, "variant": variant, "data_root": data_root, "cache": cache, "workers": workers}
    named = option.one_or_several(images)
    if by_shards(output, engine, processes):
        with watched(quiet) as display:
            done = predict_shards(model, named, engine=engine, processes=processes, watcher=display, **given)
        print_shards(done, as_json)
        return
    with watched(quiet) as display:
        predicted = predict(model, named, watcher=display, **given)
    print_predicted(predicted, as_json, quiet)
