"""One configuration and one set of images -> one finished run; the only place where all parts meet."""

import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from dccm.arrays import Bytes, ImageShape
from dccm.config import Settings, to_toml
from dccm.data.images import ImageSet
from dccm.errors import UserError, require
from dccm.evaluation.metrics import scores
from dccm.files import write_atomically
from dccm.machine import choose_precision, keep_memory, require_compiler
from dccm.methods.base import DirectMethod
from dccm.runs import results
from dccm.runs.model import Model, RunConfig
from dccm.runs.results import RunResult
from dccm.training.checkpoint import CheckpointFolder, TensorFile
from dccm.training.loop import train
from dccm.training.progress import OnProgress, Progress, Record, Stage

MAY_DIFFER = frozenset({"device", "epochs", "budget_minutes", "budget_passes", "checkpoint_minutes"})
"""Settings that a resumed run may change: where it computes and for how long."""


@dataclass(frozen=True)
class Fitted:
    """A trained model and how it got there."""

    model: Model
    history: list[Record]
    seconds: float
    used: Settings
    """Device and precision that it was computed with, whatever `auto` turned out to be."""


def new_model(images: Bytes, config: RunConfig) -> Model:
    """An untrained model for these images; settings that do not suit them are refused."""
    clusters, count = config.data.n_clusters, len(images)
    require(
        clusters <= count,
        f"n_clusters must not exceed the number of images, {count}, got {clusters}. "
        "Ask for fewer clusters or bring more images.",
    )
    height, width, channels = images.shape[1:]
    model = Model.untrained(ImageShape(channels, height, width), config)
    fewest = model.method.fewest_images
    require(
        count >= fewest,
        f"mini_batch must not exceed the number of images, {count}, got {fewest}. "
        f"Bring more images, or lower it, for example --set mini_batch={max(2, count // 4)}.",
    )
    return model


def fit(
    images: Bytes,
    config: RunConfig,
    *,
    model: Model | None = None,
    checkpoints: CheckpointFolder | None = None,
    resume: TensorFile | None = None,
    on_progress: OnProgress | None = None,
) -> Fitted:
    """Train a model on images; no label can be passed.

    Args:
        images: (N, H, W, C).
        config: All settings.
        model: The one to train; none: a new one.
        checkpoints: Where to write checkpoints; none: nowhere.
        resume: A checkpoint to go on from.
        on_progress: Called after each large batch, or stage of a method without epochs.
    """
    model = model or new_model(images, config)
    keep_memory()
    started = time.monotonic() - (resume.document["seconds"] if resume else 0)
    loader = model.loader(images)
    precision = choose_precision(config.training.precision, loader.device)
    used: Settings = {"device": str(loader.device), "precision": precision}
    if isinstance(model.method, DirectMethod):
        model.method.fit(loader, on_progress or _ignore)
        return Fitted(model, [], time.monotonic() - started, used)
    if config.training.compile:
        require_compiler(loader.device)
        model.learner.compile_networks()
    training = replace(config.training, precision=precision)
    history = train(model.learner, loader, training, checkpoints=checkpoints, resume=resume, on_progress=on_progress)
    model.method = model.learner.finish(loader)
    return Fitted(model, history, time.monotonic() - started, used)


def _ignore(_: Progress | Stage) -> None:
    """Nobody watches."""


def run(
    found: ImageSet,
    config: RunConfig,
    output: Path,
    *,
    resume: bool = False,
    baseline: Callable[[ImageSet, int, int], dict[str, Any]] | None = None,
    on_progress: OnProgress | None = None,
    say: Callable[[str], None] = print,
) -> RunResult:
    """Cluster images and fill a run directory.

    Args:
        found: The images; their labels, if there are any, are read after training, for the scores.
        config: All settings.
        output: The run directory.
        resume: Go on from the newest sound checkpoint in it.
        baseline: A simple method to compare with, when there are labels.
        on_progress: Called after each large batch.
        say: Called with a sentence that the user should read.
    """
    model = new_model(found.images, config)  # Before anything is written: it refuses what does not fit.
    description = describe(found.images, config)
    prepare(output, description, resume)
    checkpoints = CheckpointFolder(output / "checkpoints")
    checkpoint, problems = checkpoints.newest() if resume else (None, [])
    for problem in problems:
        say(problem)
    if resume and checkpoint is None:
        say("No sound checkpoint was found; the run starts from the beginning.")
    write_atomically(output / "config.toml", description)
    results.write_left_out(output, found)
    history: list[Record] = list(checkpoint.document["history"]) if checkpoint else []

    def keep(progress: Progress | Stage) -> None:
        if isinstance(progress, Progress) and progress.record is not None:
            history.append(progress.record)
            results.write_history(output, history)
        if on_progress is not None:
            on_progress(progress)

    fitted = fit(found.images, config, model=model, checkpoints=checkpoints, resume=checkpoint, on_progress=keep)
    return _write(found, config, fitted, output, baseline)


def _write(
    found: ImageSet,
    config: RunConfig,
    fitted: Fitted,
    output: Path,
    baseline: Callable[[ImageSet, int, int], dict[str, Any]] | None,
) -> RunResult:
    """Fill the run directory of a trained model; labels are looked at here for the first time."""
    probabilities = fitted.model.predict_proba(found.images)
    fitted.model.save(output / "model")
    results.write_history(output, fitted.history)
    results.write_assignments(output, found.names, probabilities)
    results.write_embedding(output, found, fitted.model.transform)
    results.write_thumbnails(output, found, probabilities)
    last = fitted.history[-1] if fitted.history else {}
    labels, compared = found.labels, None
    if baseline is not None and labels is not None:
        compared = baseline(found, config.data.n_clusters, config.training.seed)
    result = RunResult(
        method=config.method,
        preset=config.preset,
        dataset=config.dataset or None,
        n_images=len(found.images),
        n_skipped=len(found.skipped),
        n_duplicates=len(found.duplicates),
        n_clusters=config.data.n_clusters,
        seed=config.training.seed,
        settings=config.settings() | fitted.used,
        scores=None if labels is None else scores(labels, probabilities.argmax(axis=1)),
        baseline=compared,
        cost={"seconds": fitted.seconds, "passes": last.get("passes", 0.0), "peak_memory_mb": peak_memory()},
        warnings=last.get("warnings", []),
    )
    results.write_result(output, result)
    return result


def describe(images: Bytes, config: RunConfig) -> str:
    """The text of `config.toml`: all settings, and a checksum of the images they are for."""
    head = {
        "method": f'"{config.method}"',
        "preset": f'"{config.preset}"',
        "dataset": f'"{config.dataset}"',
        "images": str(len(images)),
        "checksum": f'"{_checksum(images)}"',
    }
    lines = [f"{name} = {value}" for name, value in head.items()]
    return "\n".join(["[run]", *lines, "", "[settings]", to_toml(config.sections)])


def stored_settings(output: Path) -> tuple[dict[str, Any], Settings]:
    """The `[run]` and `[settings]` tables of a run directory's `config.toml`."""
    path = output / "config.toml"
    require(path.is_file(), f"There is no run in {output} to resume: config.toml is missing. Leave out --resume.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return dict(content["run"]), dict(content["settings"])
    except (tomllib.TOMLDecodeError, KeyError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is damaged ({error}). Begin anew in another output folder.") from error


def prepare(output: Path, description: str, resume: bool) -> None:
    """Make the run directory, or refuse one that something else is in."""
    if resume:
        _require_same(output, tomllib.loads(description))
        return
    require_free(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the output folder {output}: {error.strerror}. Choose another with -o.") from error


def require_free(output: Path) -> None:
    """Refuse an output folder that something is in; it would be mixed up with the run, or lost."""
    if not output.exists():
        return
    require(output.is_dir(), f"output must be a folder, and {output} is a file. Choose another with -o.")
    holds, way = "other files", ""
    if (output / "config.toml").exists():
        holds, way = "a run already", ", or go on with that run by --resume"
    require(
        not any(output.iterdir()),
        f"The output folder {output} holds {holds}, and nothing is overwritten. Choose another with -o{way}.",
    )


def _require_same(output: Path, wanted: dict[str, Any]) -> None:
    """A resumed run has the settings and images that it was begun with."""
    head, settings = stored_settings(output)
    for stored, new in ((head, wanted["run"]), (settings, wanted["settings"])):
        for name in sorted((set(stored) | set(new)) - MAY_DIFFER):
            require(
                stored.get(name) == new.get(name),
                f"The run in {output} was begun with {name} = {stored.get(name)}, now it is {new.get(name)}. "
                "Resume with the same images and settings, or choose another output folder.",
            )


def _checksum(images: Bytes) -> str:
    value = 0
    for start in range(0, len(images), 1000):
        value = crc32(images[start : start + 1000].tobytes(), value)
    return f"{value:08x}"


def peak_memory() -> float | None:
    """Largest resident memory of this process so far, in MB; unknown on Windows."""
    try:
        # Linux counts what a parent had before it started this process into `ru_maxrss`, but not here.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        return _largest_resident_set()


def _largest_resident_set() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
