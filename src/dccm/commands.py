"""From what the user named to a finished run directory: what `dccm cluster`, `demo` and `prepare` do, and `probe`."""

import json
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dccm.arrays import Fit, ImageShape
from dccm.config import Settings
from dccm.data.datasets import DATASETS, open_benchmark
from dccm.data.images import ImageSet
from dccm.data.read import read_images
from dccm.errors import require
from dccm.evaluation.probe import Layer, ProbeConfig, probe_encoder
from dccm.methods import METHODS
from dccm.methods.base import encoder_of
from dccm.progress import Display
from dccm.report import write_report
from dccm.runs.model import Model, RunConfig, make_config
from dccm.runs.results import RunResult, parquet_available
from dccm.runs.run import require_free, run, stored_settings
from dccm.training.loop import InterruptedRunError


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Which images, and how they are read."""

    images: str
    """A path, or the name of a data set."""
    class_folders: bool = False
    variant: str = ""
    """Of a data set with other classes or images than those that the paper clusters."""
    data_root: Path | None = None
    cache: Path | None = None
    workers: int | None = None

    def read(self, display: Display, image_size: int | None, fit: Fit, channels: int | None = None) -> ImageSet:
        """The images, prepared."""
        source: Any = Path(self.images)
        by_name = self.images in DATASETS and not source.exists()
        require(
            by_name or not self.variant,
            f"variant is for data sets by name, and {self.images} is none, got '{self.variant}'. Leave it out.",
        )
        if by_name:
            source = open_benchmark(self.images, self.data_root, variant=self.variant, on_progress=display.downloading)
        return read_images(
            source,
            image_size=image_size,
            fit=fit,
            channels=channels,
            class_folders=self.class_folders,
            cache=self.cache,
            workers=self.workers,
            on_progress=display.reading,
            say=display.say,
        )


def cluster_images(
    reading: Reading,
    what: tuple[str, str | None, str],
    overrides: Settings,
    output: Path,
    *,
    resume: bool = False,
    quiet: bool = False,
    as_json: bool = False,
    baseline: Callable[[ImageSet, int, int], dict[str, Any]] | None = None,
) -> None:
    """Read images, run a method on them, write the report, print the outcome.

    Args:
        reading: The images.
        what: Method, preset (none: the default one) and data set of the preset.
        overrides: Settings that win over the preset's.
        output: The run directory.
        resume: Go on with the run in it, with its own settings below `overrides`.
        quiet: No progress.
        as_json: Print the result as JSON.
        baseline: A simple method to compare with, when there are labels.
    """
    if resume:
        head, stored = stored_settings(output)
        what, overrides = (head["method"], head["preset"], head["dataset"]), stored | overrides
    else:
        require_free(output)  # Before images are read, which can take long.
    config = make_config(*what, overrides)
    with _interruptible(output), Display(quiet) as display:
        found = reading.read(display, config.data.image_size, config.data.fit)
        _say_what(found, config, display)
        result = run(
            found, config, output, resume=resume, baseline=baseline, on_progress=display.training, say=display.say
        )
    _finish(result, found, output, as_json)


def prepare_images(reading: Reading, image_size: int | None, fit: Fit, *, quiet: bool, as_json: bool) -> None:
    """Decode images into the cache, and print what they are and what is odd about them."""
    with _interruptible(None), Display(quiet) as display:
        found = reading.read(display, image_size, fit)
    count, height, width, channels = found.images.shape
    if as_json:
        shape = {"images": count, "height": height, "width": width, "channels": channels}
        odd = {name: [row._asdict() for row in getattr(found, name)] for name in ("skipped", "duplicates")}
        print(json.dumps(shape | odd))
        return
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # Names may be any bytes.
    print(f"{count:,} images of {height} x {width} x {channels}.")
    print("".join(f"skipped    {path}: {reason}\n" for path, reason in found.skipped), end="")
    print("".join(f"duplicate  {path} is the same as {other}\n" for path, other in found.duplicates), end="")
    print(f"{len(found.skipped):,} files skipped, {len(found.duplicates):,} duplicates.")


def probe_run(
    run: Path,
    reading: Reading,
    layers: tuple[Layer, ...],
    *,
    test_share: float | None = None,
    seed: int = 0,
    device: str = "auto",
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Print how well a probe tells the true classes of test images from the frozen features of a run.

    Args:
        run: Run directory, or model folder.
        reading: Images with labels and splits.
        layers: Layers to probe.
        test_share: Draw so many test images at random, instead of by the images' own splits.
        seed: Decides the probe's draws.
        device: Where the features are computed.
        quiet: No progress.
        as_json: Print the result as JSON.
    """
    model = Model.load(run, device)
    encoder = encoder_of(model.method)  # Before images are read, which can take long.
    require(
        encoder is not None,
        f"The method '{model.config.method}' has no encoder whose layers could be probed. Probe a run of a method "
        "that learns a network, such as dccm.",
    )
    assert encoder is not None
    with _interruptible(None), Display(quiet) as display:
        found = reading.read(display, square_side(model.shape), model.config.data.fit, model.shape.channels)
        config = ProbeConfig(seed=seed)
        probed = probe_encoder(
            encoder,
            model.loader(found.images),
            found,
            layers,
            test_share=test_share,
            config=config,
            on_progress=display.working,
        )
    if as_json:
        print(json.dumps(probed._asdict()))
        return
    print(f"Learnt from {probed.train_images:,} images; share of {probed.test_images:,} others classified right:")
    print("\n".join(f"{layer:17s} {share:.4f}" for layer, share in probed.accuracy.items()))


def square_side(shape: ImageShape) -> int | None:
    """The side to bring images to; images that are not square must come in the model's shape."""
    return shape.height if shape.height == shape.width else None


def _finish(result: RunResult, found: ImageSet, output: Path, as_json: bool) -> None:
    page = write_report(output)
    if as_json:
        print(json.dumps(asdict(result)))
        return
    print(result.summary())
    if found.skipped:
        print(f"{len(found.skipped):,} files were skipped; {output / 'skipped.csv'} says why.")
    if found.duplicates:
        print(f"{len(found.duplicates):,} images are there more than once; see {output / 'duplicates.csv'}.")
    if not parquet_available():
        print("No parquet files were written: they need pyarrow. Get it with: pip install 'dccm[data]'")
    print(f"Assignments: {output / 'assignments.csv'}\nModel:       {output / 'model'}\nReport:      {page}")


def _say_what(found: ImageSet, config: RunConfig, display: Display) -> None:
    """What is about to be clustered, by which method and network."""
    count, height, width, channels = found.images.shape
    shape = ImageShape(channels, height, width)
    encoder = encoder_of(METHODS[config.method](shape, config.data.n_clusters, config.own))
    network = f" with {encoder.description}" if encoder else ""
    display.say(
        f"{count:,} images of {height} x {width} x {channels} ({len(found.skipped):,} skipped, "
        f"{len(found.duplicates):,} duplicates) into {config.data.n_clusters} clusters by {config.method}{network}, "
        f"preset {config.preset}."
    )


@contextmanager
def _interruptible(output: Path | None) -> Iterator[None]:
    """Ctrl-C, and a polite request to end, stop with a word on how to go on."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except InterruptedRunError as stop:
        where = f"The checkpoint is {stop.checkpoint}; go on" if stop.checkpoint else "Begin again"
        _stop(f"{where} with: {_resume_command()}")
    except KeyboardInterrupt:
        if output is not None and (output / "config.toml").exists():
            _stop(f"Go on with: {_resume_command()}")
        _stop("What is prepared so far is kept: the same command goes on from there.")
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(advice: str) -> None:
    print(f"\nInterrupted. {advice}", file=sys.stderr)
    sys.exit(130)


def _resume_command() -> str:
    words = ["dccm", *sys.argv[1:]]
    return shlex.join(words if "--resume" in words else [*words, "--resume"])
