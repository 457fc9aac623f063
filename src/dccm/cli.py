"""The command `dccm`: each command parses, calls one function, prints.

Nothing heavy is imported before a command needs it: torch alone takes seconds.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dccm import __version__
from dccm.errors import UserError, did_you_mean, require

if TYPE_CHECKING:
    from dccm.data.images import ImageSet
    from dccm.model import RunConfig
    from dccm.progress import Display
    from dccm.results import RunResult

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Group unlabelled images into clusters by Deep Comprehensive Correlation Mining.",
    epilog="Example: dccm cluster photos/ -k 12 -o clusters",
)

Output = Annotated[Path | None, typer.Option("-o", "--output", help="Folder for everything that is written.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting; may be repeated.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Seed = Annotated[int | None, typer.Option(help="Decides every random draw.")]
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
    overrides = _overrides(settings, seed=seed)
    _cluster(
        "digits",
        ("dccm", "fast", "digits"),
        overrides,
        output or Path("dccm-demo"),
        resume=resume,
        quiet=quiet,
        as_json=as_json,
        baseline=_kmeans_on_pixels,
    )


@app.command(epilog="Example: dccm cluster photos/ -k 12 -o clusters")
def cluster(
    images: Annotated[str, typer.Argument(help="Folder of images, .npy or .npz file, or 'digits'.")],
    clusters: Annotated[int | None, typer.Option("-k", "--clusters", help="Number of clusters.")] = None,
    method: Annotated[str, typer.Option("-m", "--method", help='See "dccm methods".')] = "dccm",
    preset: Annotated[str, typer.Option(help='See "dccm presets".')] = "paper",
    dataset: Annotated[str, typer.Option(help='Use the preset\'s table for it; see "dccm datasets".')] = "",
    output: Output = None,
    settings: Sets = None,
    seed: Seed = None,
    epochs: Annotated[int | None, typer.Option(help="Times that every image is drawn.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Side in pixels to which images are brought.")] = None,
    budget: Annotated[str | None, typer.Option(help="minutes:M or passes:P, whatever --epochs says.")] = None,
    device: Device = None,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Cluster images; write assignments, a model for later images, and a report."""
    from dccm.data.datasets import DATASETS

    require(
        not dataset or dataset in DATASETS,
        f"No data set '{dataset}'.{did_you_mean(dataset, DATASETS)} See \"dccm datasets\".",
    )
    overrides = _overrides(
        settings, n_clusters=clusters, seed=seed, epochs=epochs, image_size=image_size, device=device, budget=budget
    )
    name = images if images in DATASETS and not Path(images).exists() else dataset
    _cluster(
        images,
        (method, preset, name),
        overrides,
        output or Path(f"dccm-{Path(images).stem or 'run'}"),
        resume=resume,
        quiet=quiet,
        as_json=as_json,
    )


@app.command(epilog="Example: dccm predict clusters new-photos/ -o new-assignments")
def predict(
    model: Annotated[Path, typer.Argument(help="Run directory, or model folder of DCCM.save.")],
    images: Annotated[Path, typer.Argument(help="Folder of images, .npy or .npz file.")],
    output: Output = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Assign new images to the clusters of a trained model, with confidence; as CSV, or into a folder with -o."""
    from dccm import results
    from dccm.data.images import read_images
    from dccm.model import Model
    from dccm.progress import Display
    from dccm.run import prepare

    trained = Model.load(model, device)
    if output is not None:
        prepare(output, "", resume=False)
    with Display(quiet) as display:
        found = read_images(
            images, image_size=_side(trained.shape), channels=trained.shape.channels, report=display.reading
        )
    probabilities = trained.predict_proba(found.images)
    if output is not None:
        results.write_assignments(output, found.names, probabilities)
        results.write_skipped(output, found.skipped)
    rows = list(zip(found.names, probabilities.argmax(axis=1).tolist(), probabilities.max(axis=1).tolist()))
    if as_json:
        keys = ("path", "cluster", "confidence")
        print(json.dumps({"assignments": [dict(zip(keys, row)) for row in rows], "skipped": found.skipped}))
    elif output is None:
        _print_rows(("path", "cluster", "confidence"), [(name, c, f"{p:.6f}") for name, c, p in rows])
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
    from dccm.results import read_assignments

    names, clusters = read_assignments(run)
    found = scores(read_labels(labels, names), clusters)
    print(json.dumps(found) if as_json else "\n".join(f"{name:17s} {value:.4f}" for name, value in found.items()))


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
    _print_table(rows, as_json)


@app.command(epilog="Example: dccm datasets")
def datasets(as_json: Json = False) -> None:
    """List the data sets of the paper (its Table 1), and those that need no download."""
    from dccm.data.datasets import DATASETS, READ_BY_NAME

    rows: list[dict[str, Any]] = [
        {"name": name} | row._asdict() | {"read by name": name in READ_BY_NAME} for name, row in DATASETS.items()
    ]
    _print_table(rows, as_json)


@app.command(epilog="Example: dccm presets paper --dataset cifar10")
def presets(
    preset: Annotated[str | None, typer.Argument(help="Show all settings of this preset.")] = None,
    dataset: Annotated[str, typer.Option(help="For this data set.")] = "",
    method: Annotated[str, typer.Option("-m", "--method", help="Of this method.")] = "dccm",
    as_json: Json = False,
) -> None:
    """List the presets, or all settings of one with their meaning."""
    from dccm.config import read_presets
    from dccm.model import make_config

    if preset is None:
        rows = [
            {"preset": name, "data set": table or "any", "sets": ", ".join(f"{k}={v}" for k, v in values.items())}
            for name, tables in read_presets(method).items()
            for table, values in tables.items()
        ]
        return _print_table(rows, as_json)
    settings = make_config(method, preset, dataset).settings()
    return _print_table([{"setting": name, "value": value} for name, value in settings.items()], as_json)


def _cluster(
    images: str,
    what: tuple[str, str, str],
    overrides: dict[str, object],
    output: Path,
    *,
    resume: bool,
    quiet: bool,
    as_json: bool,
    baseline: Callable[["ImageSet", "RunConfig"], dict[str, Any]] | None = None,
) -> None:
    """Read images, run the method on them, write the report, print the outcome."""
    from dccm.model import make_config
    from dccm.progress import Display
    from dccm.results import parquet_available
    from dccm.run import require_free, run, stored_settings
    from dccm.training import InterruptedRunError

    if resume:
        head, stored = stored_settings(output)
        what, overrides = (head["method"], head["preset"], head["dataset"]), stored | overrides
    else:
        require_free(output)  # Before images are read, which can take long.
    config = make_config(*what, overrides)
    try:
        with _interruptible(), Display(quiet) as display:
            found = _read(images, config, display)
            _say_what(found, config, display)
            result = run(
                found, config, output, resume=resume, baseline=baseline, report=display.training, say=display.say
            )
    except InterruptedRunError as stop:
        where = f"The checkpoint is {stop.checkpoint}; go on" if stop.checkpoint else "Begin again"
        print(f"\nInterrupted. {where} with: {_resume_command()}", file=sys.stderr)
        sys.exit(130)
    _finish(result, found, output, as_json, parquet_available())


def _finish(result: "RunResult", found: "ImageSet", output: Path, as_json: bool, parquet: bool) -> None:
    from dataclasses import asdict

    from dccm.report import write_report

    page = write_report(output)
    if as_json:
        print(json.dumps(asdict(result)))
        return
    print(result.summary())
    if found.skipped:
        print(f"{len(found.skipped)} files were skipped; {output / 'skipped.csv'} says why.")
    if not parquet:
        print("No parquet files were written: they need pyarrow. Get it with: pip install 'dccm[data]'")
    print(f"Assignments: {output / 'assignments.csv'}\nModel:       {output / 'model'}\nReport:      {page}")


def _say_what(found: "ImageSet", config: "RunConfig", display: "Display") -> None:
    """What is about to be clustered, by which network."""
    from dccm.networks.encoder import ImageShape, nearest_architecture

    count, height, width, channels = found.images.shape
    side = nearest_architecture(ImageShape(channels, height, width)).side
    display.say(
        f"{count:,} images of {height} x {width} x {channels} ({len(found.skipped)} skipped) into "
        f"{config.data.n_clusters} clusters; the paper's network for {side} pixels, preset {config.preset}."
    )


def _read(images: str, config: "RunConfig", display: "Display") -> "ImageSet":
    """Images by name of a data set or by path."""
    from dccm.data.datasets import DATASETS, READ_BY_NAME, load_digits
    from dccm.data.images import read_images

    path = Path(images)
    if not path.exists() and images in READ_BY_NAME:
        return load_digits()
    require(
        path.exists() or images not in DATASETS,
        f"The data set '{images}' is not read by name yet. Give its images as a folder, .npy or .npz file, "
        f"and --dataset {images} for its preset.",
    )
    return read_images(path, image_size=config.data.image_size, report=display.reading)


def _overrides(assignments: list[str] | None, *, budget: str | None = None, **flags: object) -> dict[str, object]:
    """What the command line says, as settings."""
    from dccm.config import parse_assignments, parse_budget

    given = {name: value for name, value in flags.items() if value is not None}
    return parse_assignments(assignments or []) | given | (parse_budget(budget) if budget else {})


def _kmeans_on_pixels(found: "ImageSet", config: "RunConfig") -> dict[str, Any]:
    """What k-means makes of the same pixels."""
    from sklearn.cluster import KMeans

    from dccm.evaluation.metrics import scores

    pixels = found.images.reshape(len(found.images), -1) / 255
    kmeans = KMeans(config.data.n_clusters, n_init=10, random_state=config.training.seed)
    return {"name": "k-means on pixels", "scores": scores(found.labels, kmeans.fit_predict(pixels))}  # type: ignore[arg-type]


@contextmanager
def _interruptible() -> Iterator[None]:
    """A polite request to end is treated as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _resume_command() -> str:
    import shlex

    words = ["dccm", *sys.argv[1:]]
    return shlex.join(words if "--resume" in words else [*words, "--resume"])


def _side(shape: Any) -> int | None:
    """The side to bring images to; images that are not square must come in the model's shape."""
    return int(shape.height) if shape.height == shape.width else None


def _print_rows(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    import csv

    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def _print_table(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*(str(name) for name in rows[0]), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 160).print(table, markup=False, highlight=False)


if __name__ == "__main__":
    main()
