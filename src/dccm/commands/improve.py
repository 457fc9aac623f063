"""A run goes on with what people said of its clusters: a new run, in a folder of its own."""

from pathlib import Path
from typing import Any, Unpack

from dccm.commands.inputs import take_inputs
from dccm.commands.reading import Reading, open_images
from dccm.config import Settings
from dccm.corrections.carried import carry_over
from dccm.corrections.going_on import going_on, require_same_images, resumed
from dccm.data.images import ImageSet
from dccm.data.reopen import reopened
from dccm.data.sources.base import Source
from dccm.errors import require
from dccm.progress import Watcher
from dccm.report import write_report
from dccm.runs.confidence import parse_reject
from dccm.runs.directory import RunDirectory
from dccm.runs.fitting import require_machine
from dccm.runs.run import Clustering, run
from dccm.training.workers import ALONE, Workers


def improve(
    parent: str | Path | None,
    images: Any,
    directory: RunDirectory,
    *,
    given: Settings,
    resume: bool = False,
    reject: float | str | None = None,
    watcher: Watcher,
    team: Workers = ALONE,
    **reading: Unpack[Reading],
) -> Clustering:
    """Learn on from a run and its corrections; the run itself stays as it is.

    Args:
        parent: Run directory; None: the one that a resumed run goes on from.
        images: Those of the run; None: they are where it found them.
        directory: The new run directory.
        given: Any settings; others are those of the run, but shorter and with smaller steps.
        resume: Go on with the run in the output folder.
        reject: Images that get no cluster.
        watcher: Is told how it gets on.
        team: The processes that learn together.
        **reading: Which images, and how they are read; see `Reading`.
    """
    rejecting = parse_reject(reject)
    if resume:
        corrected, lesson, config = resumed(directory, parent, given)
    else:
        directory.require_free()
        assert parent is not None
        corrected, lesson, config = going_on(RunDirectory(parent), given)
    require_machine(config.training)
    source = _source(corrected.directory, images, watcher, **reading)
    image_set, inputs, opened, pretrained, views = take_inputs(source, config, watcher, **reading)
    require_same_images(corrected, image_set)
    finished = run(
        image_set,
        config,
        directory,
        inputs=inputs,
        pretrained=pretrained,
        encoder=opened,
        views=views,
        lesson=lesson,
        resume=resume,
        reject=rejecting,
        on_progress=watcher.training,
        say=watcher.say,
        workers=team,
    )
    if team.writes:
        carry_over(corrected, directory)
        write_report(directory)
    return finished


def require_left_out(**named: tuple[object, object]) -> None:
    """Refuse what a run that is improved has decided already: each value must be the usual one."""
    for name, (value, usual) in named.items():
        require(
            value == usual,
            f"{name} must be left out with improve, as it is that of the run that is improved, got '{value}'.",
        )


def is_improved(directory: RunDirectory) -> bool:
    """Whether a folder holds a run that goes on from another."""
    return directory.holds_run and bool(directory.read_config().begun.improved_from)


def _source(parent: RunDirectory, images: Any, watcher: Watcher, **reading: Unpack[Reading]) -> Source | ImageSet:
    """The images as the user names them, or as the run noted them."""
    if images is not None:
        return open_images(images, watcher, **reading)
    stored = parent.read_source()
    again = "Give them again, as for the run itself."
    require(bool(stored.place), f"The images of {parent.path} were in memory only. {again}")
    require(stored.kind != "several sources", f"The images of {parent.path} are of several sources. {again}")
    source = reopened(stored.place)
    assert source is not None
    if reading.get("class_folders"):
        source.label_by_folder()
    return source
