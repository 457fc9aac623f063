"""The command `dccm`: each command parses, calls one function, prints.

Nothing heavy is imported before a command needs it: torch alone takes seconds.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from dccm import __version__
from dccm.errors import UserError, did_you_mean, require
from dccm.printing import print_csv, print_table

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Group unlabelled images into clusters by Deep Comprehensive Correlation Mining.",
    epilog="Example: dccm cluster photos/ -k 12 -o clusters",
)

_IMAGES = "Folder, zip or tar archive, parquet, .npy or .npz file, list of paths (.txt, .csv)"
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Folder for everything that is written.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting; may be repeated.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int | None, typer.Option(help="Decides every random draw.")]
Cache = Annotated[
    Path | None, typer.Option(help="Folder for prepared images; default $DCCM_CACHE, or your cache folder.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Threads that decode images; default one a processor.")]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder with the official files of a data set; what is missing is downloaded.")
]
ClassFolders = Annotated[
    bool, typer.Option("--class-folders", help="The first folder of each path is the true class, for the scores only.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the output folder.")]


def main() -> None:
    """Run the command; what a user can cause ends in one sentence and exit code 2."""
    try:
        app()
    except UserError as error:
        print(f"dccm: {error}", file=sys.stderr)
        sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"dccm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: dccm demo -o dccm-demo")
def demo(
    output: Output = None,
    seed: Seed = None,
    settings: Sets = None,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Cluster the 1,797 handwritten digits that ship with scikit-learn, beside k-means, and write a report."""
    from dccm.commands import Reading, cluster_images
    from dccm.evaluation.baseline import kmeans_on_pixels

    cluster_images(
        Reading(images="digits"),
        ("dccm", "fast", "digits"),
        _overrides(settings, seed=seed),
        output or Path("dccm-demo"),
        resume=resume,
        quiet=quiet,
        as_json=as_json,
        baseline=kmeans_on_pixels,
    )


@app.command(epilog="Example: dccm cluster photos/ -k 12 -o clusters")
def cluster(
    images: Annotated[str, typer.Argument(help=_IMAGES + ' or a name of "dccm datasets".')],
    clusters: Annotated[int | None, typer.Option("-k", "--clusters", help="Number of clusters.")] = None,
    method: Annotated[str, typer.Option("-m", "--method", help='See "dccm methods".')] = "dccm",
    preset: Annotated[
        str | None, typer.Option(help='See "dccm presets"; else fast, or paper where there is none.')
    ] = None,
    dataset: Annotated[str, typer.Option(help='Use the preset\'s table for it; see "dccm datasets".')] = "",
    output: Output = None,
    settings: Sets = None,
    seed: Seed = None,
    epochs: Annotated[int | None, typer.Option(help="Times that every image is drawn.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Side in pixels to which images are brought.")] = None,
    budget: Annotated[str | None, typer.Option(help="minutes:M or passes:P, whatever --epochs says.")] = None,
    class_folders: ClassFolders = False,
    data_root: DataRoot = None,
    cache: Cache = None,
    workers: Workers = None,
    device: Device = None,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Cluster images; write assignments, a model for later images, and a report."""
    from dccm.commands import Reading, cluster_images
    from dccm.data.datasets import DATASETS

    require(
        not dataset or dataset in DATASETS,
        f"No data set '{dataset}'.{did_you_mean(dataset, DATASETS)} See \"dccm datasets\".",
    )
    overrides = _overrides(
        settings, n_clusters=clusters, seed=seed, epochs=epochs, image_size=image_size, device=device, budget=budget
    )
    name = images if images in DATASETS and not Path(images).exists() else dataset
    cluster_images(
        Reading(images=images, class_folders=class_folders, data_root=data_root, cache=cache, workers=workers),
        (method, preset, name),
        overrides,
        output or Path(f"dccm-{Path(images).stem or 'run'}"),
        resume=resume,
        quiet=quiet,
        as_json=as_json,
    )


@app.command(epilog="Example: dccm prepare photos/ --image-size 96")
def prepare(
    images: Annotated[str, typer.Argument(help=_IMAGES + ' or a name of "dccm datasets".')],
    image_size: Annotated[int | None, typer.Option(min=8, help="Side in pixels to which images are brought.")] = None,
    fit: Annotated[str, typer.Option(help="crop the longer side, or pad the shorter one.")] = "crop",
    data_root: DataRoot = None,
    cache: Cache = None,
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Decode images before a run, and list damaged files and duplicates; later runs start at once."""
    from dccm.commands import Reading, prepare_images
    from dccm.config import DataConfig, build

    [data] = build([DataConfig], {"fit": fit}, "prepare")
    reading = Reading(images=images, data_root=data_root, cache=cache, workers=workers)
    prepare_images(reading, image_size, data.fit, quiet=quiet, as_json=as_json)


@app.command(epilog="Example: dccm predict clusters new-photos/ -o new-assignments")
def predict(
    model: Annotated[Path, typer.Argument(help="Run directory, or model folder of DCCM.save.")],
    images: Annotated[Path, typer.Argument(help=_IMAGES)],
    output: Output = None,
    cache: Cache = None,
    workers: Workers = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Assign new images to the clusters of a trained model, with confidence; as CSV, or into a folder with -o."""
    from dccm.commands import square_side
    from dccm.data.read import read_images
    from dccm.progress import Display
    from dccm.runs import results
    from dccm.runs.model import Model
    from dccm.runs.run import prepare

    trained = Model.load(model, device)
    if output is not None:
        prepare(output, "", resume=False)
    with Display(quiet) as display:
        found = read_images(
            images,
            image_size=square_side(trained.shape),
            fit=trained.config.data.fit,
            channels=trained.shape.channels,
            cache=cache,
            workers=workers,
            on_progress=display.reading,
            say=display.say,
        )
    probabilities = trained.predict_proba(found.images)
    if output is not None:
        results.write_assignments(output, found.names, probabilities)
        results.write_left_out(output, found)
    rows = list(zip(found.names, probabilities.argmax(axis=1).tolist(), probabilities.max(axis=1).tolist()))
    if as_json:
        keys = ("path", "cluster", "confidence")
        print(json.dumps({"assignments": [dict(zip(keys, row)) for row in rows], "skipped": found.skipped}))
    elif output is None:
        print_csv(("path", "cluster", "confidence"), [(name, c, f"{p:.6f}") for name, c, p in rows])
    else:
        print(f"{len(rows):,} images assigned, {len(found.skipped)} skipped; see {output / 'assignments.csv'}.")
    if found.skipped and output is None and not quiet:
        for file in found.skipped:
            print(f"skipped {file.path}: {file.reason}", file=sys.stderr)


@app.command(epilog="Example: dccm evaluate clusters --labels labels.csv")
def evaluate(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    labels: Annotated[
        Path, typer.Option(help="CSV with the columns path and label, or an .npy array in the order of the images.")
    ],
    as_json: Json = False,
) -> None:
    """Score the clusters of a run against true labels: ACC, NMI, ARI and BCubed."""
    from dccm.evaluation.labels import read_labels
    from dccm.evaluation.metrics import scores
    from dccm.runs.results import read_assignments

    names, clusters = read_assignments(run)
    found = scores(read_labels(labels, names), clusters)
    print(json.dumps(found) if as_json else "\n".join(f"{name:17s} {value:.4f}" for name, value in found.items()))


@app.command(epilog="Example: dccm probe clusters cifar10 --layer conv")
def probe(
    run: Annotated[Path, typer.Argument(help="Run directory, or model folder of DCCM.save.")],
    source: Annotated[str, typer.Argument(help=_IMAGES + ' or a name of "dccm datasets"; with labels.')],
    layer: Annotated[str, typer.Option(help="conv: last convolution, y: deep feature, or both.")] = "both",
    test_share: Annotated[
        float | None, typer.Option(help="Draw this share of test images at random, instead of by the source's split.")
    ] = None,
    variant: Annotated[str, typer.Option(help="Of a data set by name: fine gives CIFAR-100 its 100 classes.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Decides every random draw.")] = 0,
    class_folders: ClassFolders = False,
    data_root: DataRoot = None,
    cache: Cache = None,
    workers: Workers = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Score the frozen features of a run: how well one hidden layer learns true classes from them (Figure 4)."""
    from dccm.commands import Reading, probe_run
    from dccm.evaluation.probe import LAYERS

    require(layer in (*LAYERS, "both"), f"layer must be conv, y or both, got '{layer}'.")
    probe_run(
        run,
        Reading(
            images=source,
            class_folders=class_folders,
            variant=variant,
            data_root=data_root,
            cache=cache,
            workers=workers,
        ),
        tuple(name for name in LAYERS if layer in (name, "both")),
        test_share=test_share,
        seed=seed,
        device=device,
        quiet=quiet,
        as_json=as_json,
    )


@app.command(epilog="Example: dccm report clusters")
def report(run: Annotated[Path, typer.Argument(help="Run directory.")]) -> None:
    """Write the report of a finished run anew, from its files alone."""
    from dccm.report import write_report

    print(write_report(run))


@app.command(epilog="Example: dccm methods --json")
def methods(as_json: Json = False) -> None:
    """List the methods: year, what they learn, rough cost, citation."""
    from dccm.methods import METHODS

    fields = ("year", "learns", "cost", "citation")
    rows = [{"method": name} | {key: getattr(kind, key) for key in fields} for name, kind in METHODS.items()]
    print_table(rows, as_json)


@app.command(epilog="Example: dccm datasets")
def datasets(as_json: Json = False) -> None:
    """List the data sets that are read by name: Table 1 of the paper and two more, with licence and citation."""
    from dccm.data.datasets import DATASETS

    print_table([{"name": name} | row._asdict() for name, row in DATASETS.items()], as_json)


@app.command(epilog="Example: dccm presets paper --dataset cifar10")
def presets(
    preset: Annotated[str | None, typer.Argument(help="Show all settings of this preset.")] = None,
    dataset: Annotated[str, typer.Option(help="For this data set.")] = "",
    method: Annotated[str, typer.Option("-m", "--method", help="Of this method.")] = "dccm",
    as_json: Json = False,
) -> None:
    """List the presets, or all settings of one with their meaning."""
    from dccm.config import read_presets
    from dccm.runs.model import make_config

    if preset is None:
        rows = [
            {"preset": name, "data set": table or "any", "sets": ", ".join(f"{k}={v}" for k, v in values.items())}
            for name, tables in read_presets(method).items()
            for table, values in tables.items()
        ]
        return print_table(rows, as_json)
    settings = make_config(method, preset, dataset).settings()
    return print_table([{"setting": name, "value": value} for name, value in settings.items()], as_json)


def _overrides(assignments: list[str] | None, *, budget: str | None = None, **flags: object) -> dict[str, object]:
    """What the command line says, as settings."""
    from dccm.config import parse_assignments, parse_budget

    given = {name: value for name, value in flags.items() if value is not None}
    return parse_assignments(assignments or []) | given | (parse_budget(budget) if budget else {})


if __name__ == "__main__":
    main()
