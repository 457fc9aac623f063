"""From what the user named to a finished run directory."""

import os
from collections.abc import Mapping
from glob import has_magic
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from dccm.commands.improve import improve as improved
from dccm.commands.improve import is_improved, require_left_out
from dccm.commands.inputs import take_inputs, with_encoder
from dccm.commands.reading import Reading, open_images
from dccm.config import Settings, parse_budget
from dccm.data.datasets import DATASETS, data_set_name
from dccm.data.storage import is_address
from dccm.errors import choose, require
from dccm.progress import SILENT, Watcher
from dccm.report import write_report
from dccm.runs.automatic import AUTO
from dccm.runs.choice import Asked
from dccm.runs.choosing import chosen, require_same_choice, take_asked
from dccm.runs.confidence import parse_reject
from dccm.runs.config import RunConfig, kept_config, make_config
from dccm.runs.directory import RunDirectory
from dccm.runs.fitting import require_machine
from dccm.runs.run import Clustering, Compare, run
from dccm.runs.several import goes_on, introduction
from dccm.training.team import joined
from dccm.training.workers import Workers


def cluster(
    images: Any = None,
    n_clusters: int | str | None = None,
    method: str = "dccm",
    *,
    output: str | Path | None = None,
    improve: str | Path | None = None,
    encoder: str | None = None,
    preset: str | None = None,
    dataset: str = "",
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    image_size: int | None = None,
    budget: str | None = None,
    device: str | None = None,
    resume: bool = False,
    reject: float | str | None = None,
    baseline: Compare | None = None,
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> Clustering:
    """Cluster images; write assignments, a model for later images, and a report into a folder.

    Started by torchrun, all processes learn together, and each has the result.

    Args:
        images: A path or the name of a data set, an array, a tensor, a data set or an `ImageSet`; see `read_images`.
            None: those of the run that is improved.
        n_clusters: K; `auto` or a range such as `5..30`: it is chosen, see `choose_k`; None: as the preset says.
        method: See "dccm methods".
        output: The run directory; None: `dccm-` and the name of the images, in the current folder.
        improve: Run directory to learn on from, with what people corrected there; the result is a run of its own.
            Settings are those of that run, but shorter and with smaller steps.
        encoder: Pretrained network whose vectors are clustered in the place of the images, see "dccm encoders";
            `scratch`: none; `auto`: one for photographs of 48 pixels and more, if its weights are installed. None: as
            `auto` where neither a preset nor settings nor a data set is named, else as the settings say.
        preset: See "dccm presets"; None: the method's default one.
        dataset: Whose table of the preset to use, where the images are not those of a data set by name.
        settings: Any settings by name; they win over the preset, and what is given here by its own name over both.
        seed: Decides every random draw.
        epochs: Times that every image is drawn.
        image_size: Side in pixels to which images are brought.
        budget: `minutes:M` or `passes:P`, whatever `epochs` says.
        device: auto, cpu, cuda, cuda:1, mps.
        resume: Go on with the run in the output folder, with its settings below those given here.
        reject: Images that get no cluster: a share of the least sure ones, 0.1, or those of a confidence below a
            threshold, `below:0.6`; None: all get one.
        baseline: A simple method to compare with, when there are labels.
        watcher: Is told how it gets on.
        **reading: Which images, and how they are read; see `Reading`.
    """
    named = {"n_clusters": n_clusters, "seed": seed, "epochs": epochs, "image_size": image_size, "device": device}
    given = _given(settings, named | {"encoder": None if encoder == AUTO else encoder}, budget)
    directory = RunDirectory(output or default_output(images, improve))
    with joined() as team:
        told: dict[str, Any] = {"resume": goes_on(directory, resume, team), "reject": reject, "watcher": watcher}
        if sentence := introduction(again=told["resume"] and not resume):
            watcher.say(sentence)
        if improve is not None or (told["resume"] and is_improved(directory)):
            require_left_out(method=(method, "dccm"), preset=(preset, None), dataset=(dataset, ""))
            return improved(improve, images, directory, given=given, team=team, **told, **reading)
        _require_named(images)
        begun = _Begun(method, preset, dataset, encoder, given)
        finished = _clustered(images, directory, begun, baseline, team, **told, **reading)
        if team.writes:
            write_report(directory)
        return finished


class _Begun(NamedTuple):
    """What a run is begun with, as the user names it."""

    method: str
    preset: str | None
    dataset: str
    encoder: str | None
    given: Settings


def _clustered(
    images: Any,
    directory: RunDirectory,
    wanted: _Begun,
    baseline: Compare | None,
    team: Workers,
    *,
    resume: bool,
    reject: float | str | None,
    watcher: Watcher,
    **reading: Unpack[Reading],
) -> Clustering:
    given = wanted.given
    asked = take_asked(given)
    # All of this before images are read, which can take long.
    rejecting = parse_reject(reject)
    if resume:
        config = _resumed(directory, given, asked)
    else:
        directory.require_free()
        config = make_config(wanted.method, wanted.preset, data_set_name(images) or _known(wanted.dataset), given)
    require_machine(config.training)
    source = open_images(images, watcher, **reading)
    if not resume:
        open_to: dict[str, Any] = {"given": given, "cache": reading.get("cache"), "watcher": watcher}
        config = with_encoder(config, source, encoder=wanted.encoder, preset=wanted.preset, **open_to)
    image_set, inputs, opened, pretrained, views = take_inputs(source, config, watcher, **reading)
    config, choice = chosen(inputs, None if resume else asked, config, watcher.training)
    if choice is not None:
        watcher.say(choice.sentence())
    seen: dict[str, Any] = {"inputs": inputs, "pretrained": pretrained, "encoder": opened, "views": views}
    return run(
        image_set,
        config,
        directory,
        **seen,
        choice=choice,
        resume=resume,
        reject=rejecting,
        baseline=baseline,
        on_progress=watcher.training,
        say=watcher.say,
        workers=team,
    )


def _given(settings: Mapping[str, object] | None, named: Mapping[str, object], budget: str | None) -> Settings:
    """All settings that the user gave; those given by their own name win."""
    known = {name: value for name, value in named.items() if value is not None}
    given = dict(settings or {}) | known | (parse_budget(budget) if budget else {})
    if (other := given.get("mined_by")) and isinstance(other, str):
        given["mined_by"] = os.path.realpath(other)  # The run may be resumed in another folder.
    return given


def _require_named(images: Any) -> None:
    require(images is not None, "images must be named, or a run to improve. Give a folder, for example.")


def default_output(images: Any, improve: str | Path | None = None) -> Path:
    """The run directory of images for which none is named, or of the run that is improved."""
    if improve is not None:
        return Path(f"{Path(os.path.realpath(improve)).name}-improved")  # Which raises for no link.
    if not isinstance(images, str | Path) or str(images) == "-":
        return Path("dccm-run")
    if isinstance(images, str) and (is_address(images) or has_magic(images)):
        parts = [part for part in images.split("/")[2 if is_address(images) else 0 :] if part and not has_magic(part)]
        images = parts[-1] if parts else "run"
    place = Path(images)
    if place.name in ("", ".."):  # This folder, or the one above it.
        place = Path(os.path.realpath(place))
    # Only files have endings: a folder may be called "photos.2024".
    name = place.name if os.path.isdir(place) else place.stem.removesuffix(".tar")  # noqa: PTH112 (never raises)
    return Path(f"dccm-{name[:100] or 'run'}")


def _resumed(directory: RunDirectory, given: Settings, asked: Asked | None) -> RunConfig:
    """The settings of the run in a directory, below those that are given now; a number that was chosen stays."""
    begun, stored = directory.read_config()
    if asked is not None:
        require_same_choice(directory, asked)
    return kept_config(begun.method, begun.preset, begun.dataset, stored, given)


def _known(dataset: str) -> str:
    return choose(dataset, DATASETS, "data set", "dccm datasets") if dataset else ""
