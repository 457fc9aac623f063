"""The commands: each parses, calls one function, prints.

Nothing heavy is imported before a command needs it: torch alone takes seconds.
"""

import os
import sys
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from dccm import __version__
from dccm.cli import completion as complete
from dccm.cli import options as option
from dccm.cli.help import WELCOME, GroupedCommands
from dccm.cli.interruption import begun_together, resumable, watched
from dccm.cli.terminal import lasting_streams
from dccm.errors import UserError
from dccm.launched import JointError, ending_at_once, is_silent, last_word, leave, refuse

app = typer.Typer(
    cls=GroupedCommands,
    invoke_without_command=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Group unlabelled images into clusters. The method is DCCM (ICCV 2019).",
    epilog="Example: dccm cluster photos/ -k 12 -o clusters",
)


def main() -> None:
    """Run the command; what a user can cause ends in one sentence and exit code 2."""
    if (word := last_word()) is not None and word.exists():
        leave()  # Why is said already, and new processes would come to the same end.
    if is_silent():
        sys.stdout = StringIO()
    with lasting_streams(), ending_at_once():
        _run()


def _run() -> None:
    try:
        app()
    except UserError as error:
        refuse(error)
    except MemoryError:
        tip = "Free some, or take fewer images at a time; a run that was training can be resumed."
        refuse(JointError(f"Out of memory. {tip}"))
    except BrokenPipeError:  # Whoever read the output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.strerror is None:  # Not the system's.
            raise
        of = f" of {error.filename!r}" if error.filename else ""
        way = "Mend that, and begin again; a run can be resumed."
        refuse(JointError(f"The system says '{error.strerror}'{of}. {way}"))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"dccm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    ctx: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        print(WELCOME, end="")


@app.command(epilog="Example: dccm demo -o dccm-demo")
def demo(
    output: option.Output = None,
    seed: option.Seed = None,
    settings: option.Sets = None,
    resume: option.Resume = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Cluster 1,797 handwritten digits, beside k-means. They ship with scikit-learn; writes a report."""
    from dccm.commands.cluster import cluster
    from dccm.config import parse_assignments
    from dccm.data.datasets import load_digits
    from dccm.evaluation.baseline import kmeans_on_pixels
    from dccm.printing import print_clustering

    output = output or Path("dccm-demo")
    with resumable(output, quiet) as display:
        finished = cluster(
            load_digits(),  # Not by name: a folder could be called so.
            preset="fast",
            dataset="digits",
            output=output,
            settings=parse_assignments(settings or []),
            seed=seed,
            resume=resume,
            baseline=kmeans_on_pixels,
            watcher=display,
        )
    print_clustering(finished, as_json)


@app.command(epilog="Example: dccm cluster photos/ -k 12 -o clusters")
def cluster(
    images: option.MaybeImages = None,
    clusters: option.Clusters = None,
    method: option.Method = "dccm",
    encoder: option.AnyEncoder = None,
    preset: option.Preset = None,
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="Use the preset's table for it.", autocompletion=complete.datasets)
    ] = "",
    output: option.Output = None,
    improve: option.Improve = None,
    settings: option.Sets = None,
    seed: option.Seed = None,
    epochs: Annotated[int | None, typer.Option(metavar="N", help="Times that every image is drawn.")] = None,
    image_size: Annotated[int | None, typer.Option(metavar="PIXELS", help="Side to which images are brought.")] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="minutes:M|passes:P", help="Time or work, whatever --epochs says.")
    ] = None,
    split: option.Split = "",
    variant: option.Variant = "",
    class_folders: option.ClassFolders = False,
    data_root: option.DataRoot = None,
    cache: option.Cache = None,
    workers: option.Workers = None,
    processes: option.Processes = None,
    device: option.Device = None,
    reject: option.Reject = None,
    resume: option.Resume = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Cluster images. Writes assignments, a model for later images, and a report."""
    if begun_together(processes, images or []):
        return
    from dccm.commands import cluster as command
    from dccm.config import parse_assignments
    from dccm.printing import print_clustering

    output = output or command.default_output(images[0] if images else None, improve)
    with resumable(output, quiet) as display:
        finished = command.cluster(
            option.one_or_several(images),
            clusters,
            method,
            encoder=encoder,
            output=output,
            improve=improve,
            preset=preset,
            dataset=dataset,
            settings=parse_assignments(settings or []),
            seed=seed,
            epochs=epochs,
            image_size=image_size,
            budget=budget,
            device=device,
            split=split,
            variant=variant,
            class_folders=class_folders,
            data_root=data_root,
            cache=cache,
            workers=workers,
            reject=reject,
            resume=resume,
            watcher=display,
        )
    print_clustering(finished, as_json)


@app.command(epilog="Example: dccm prepare photos/ --image-size 96")
def prepare(
    images: option.Images,
    image_size: Annotated[
        int | None, typer.Option(min=8, metavar="PIXELS", help="Side to which images are brought.")
    ] = None,
    fit: Annotated[str, typer.Option(help="crop the longer side, pad the shorter one, or stretch.")] = "crop",
    split: option.Split = "",
    variant: option.Variant = "",
    data_root: option.DataRoot = None,
    cache: option.Cache = None,
    workers: option.Workers = None,
    processes: option.Readers = None,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Decode images before a run. Lists damaged files and duplicates; later runs start at once."""
    from dccm.commands.prepare import prepare
    from dccm.printing import print_prepared

    with watched(quiet) as display:
        image_set = prepare(
            option.one_or_several(images),
            image_size=image_size,
            fit=fit,
            split=split,
            variant=variant,
            data_root=data_root,
            cache=cache,
            workers=workers,
            processes=processes,
            watcher=display,
        )
    print_prepared(image_set, as_json)


@app.command(epilog="Example: dccm evaluate clusters --labels labels.csv")
def evaluate(
    run: option.Run,
    labels: Annotated[
        Path, typer.Option(help="CSV with the columns path and label, or an .npy array in the order of the images.")
    ],
    as_json: option.Json = False,
) -> None:
    """Score the clusters of a run against true labels. ACC, NMI, ARI, BCubed, calibration error."""
    from dccm.commands.evaluate import evaluate
    from dccm.printing import print_scores

    print_scores(evaluate(run, labels), as_json)


@app.command(epilog="Example: dccm probe clusters cifar10 --layer conv")
def probe(
    run: option.ModelFolder,
    source: option.OneSource,
    layer: Annotated[str, typer.Option(help="conv: last convolution, y: deep feature, or both.")] = "both",
    test_share: Annotated[
        float | None, typer.Option(help="Draw this share of test images at random, instead of by the source's split.")
    ] = None,
    variant: option.Variant = "",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Decides every random draw.")] = 0,
    class_folders: option.ClassFolders = False,
    data_root: option.DataRoot = None,
    cache: option.Cache = None,
    workers: option.Workers = None,
    device: option.AnyDevice = "auto",
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Score the features of a run. How well one hidden layer learns true classes from them (Figure 4)."""
    from dccm.commands.probe import probe
    from dccm.printing import print_probed

    with watched(quiet) as display:
        probed = probe(
            run,
            source,
            layer=layer,
            test_share=test_share,
            seed=seed,
            variant=variant,
            class_folders=class_folders,
            data_root=data_root,
            cache=cache,
            workers=workers,
            device=device,
            watcher=display,
        )
    print_probed(probed, as_json)


@app.command(epilog="Example: dccm report clusters")
def report(
    run: option.Run,
    labels: Annotated[Path | None, typer.Option(metavar="FILE", help="True labels, as for evaluate.")] = None,
    as_json: option.Json = False,
) -> None:
    """Write the report of a run anew, from its files alone."""
    from dccm.printing import print_outcome
    from dccm.report import write_report
    from dccm.runs.directory import RunDirectory

    page = str(write_report(RunDirectory(run), labels))
    print_outcome({"report": page}, page, as_json)
