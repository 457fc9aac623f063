"""A run goes on from another and from what people said of it: which settings it has, and what it cannot take."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dccm.config import DataConfig, Settings, setting_names
from dccm.corrections.lesson import Corrected, lesson_of
from dccm.data.images import ImageSet
from dccm.errors import counted, require
from dccm.networks.base import NetworkConfig
from dccm.runs.config import RunConfig, kept_config, make_config
from dccm.runs.directory import RunDirectory
from dccm.runs.lesson import Lesson

_PASSES = 0.25
"""Of the passes of the run that is improved."""
_FEWEST_STEPS = 600
"""Gradient steps at least: a small set has few in a pass, and what people said must be learnt."""
_LEARNING_RATE = 0.3
"""Of the learning rate of that run, as its weights are good already."""
_LENGTHS = ("epochs", "budget_passes", "budget_minutes")
_FIXED = frozenset(
    {*setting_names(DataConfig), *setting_names(NetworkConfig)}
    | {"finetune", "starts", "mined_by", "without", "deep_feature"}
)
"""Settings that decide which weights there are."""


class GoingOn(NamedTuple):
    """All that a run needs to go on from another."""

    corrected: Corrected
    lesson: Lesson
    config: RunConfig


def going_on(parent: RunDirectory, given: Mapping[str, object]) -> GoingOn:
    """What a run has to teach, and the settings of the one that goes on from it."""
    _require_changeable(given)
    begun, stored = parent.read_config()
    _require_able(parent, begun.method, stored)
    corrected = Corrected(parent)
    lesson = lesson_of(corrected)
    known = kept_config(begun.method, begun.preset, begun.dataset, stored).settings()
    short: Settings = {"learning_rate": _LEARNING_RATE * _number(known, "learning_rate")}
    if not any(name in given for name in _LENGTHS):
        steps = _FEWEST_STEPS * _number(known, "mini_batch") / corrected.result.n_images
        short["budget_passes"] = max(_PASSES * corrected.result.cost.passes, steps)
    own: Settings = {"n_clusters": lesson.n_clusters, "without": lesson.without, "starts": 1, "milestones": 0}
    kept = {name: value for name, value in known.items() if name not in _LENGTHS[1:] and value is not None}
    config = make_config(begun.method, begun.preset, begun.dataset, kept | own | short | dict(given))
    return GoingOn(corrected, lesson, config)


def _number(settings: Settings, name: str) -> float:
    value = settings[name]
    assert isinstance(value, int | float)
    return float(value)


def resumed(directory: RunDirectory, parent: str | Path | None, given: Settings) -> GoingOn:
    """The same for a run that was begun already, with the corrections that it was begun with."""
    _require_changeable(given)
    begun, stored = directory.read_config()
    require(
        bool(begun.improved_from) and (parent is None or str(Path(parent).resolve()) == begun.improved_from),
        f"The run in {directory.path} was not begun with --improve {parent}, but "
        + (f"with --improve {begun.improved_from}. " if begun.improved_from else "without --improve. ")
        + "Resume it as it was begun, or choose another output folder.",
    )
    corrected = Corrected(RunDirectory(begun.improved_from), begun.changes)
    config = kept_config(begun.method, begun.preset, begun.dataset, stored, given)
    return GoingOn(corrected, lesson_of(corrected), config)


def require_same_images(corrected: Corrected, image_set: ImageSet) -> None:
    """Refuse other images than those of the run: what was said of one would be learnt of another."""
    directory, names = corrected.directory, corrected.assignments.paths
    if image_set.origin.checksum == directory.read_config().begun.checksum and len(image_set.names) == len(names):
        return
    there = set(image_set.names)
    touched = np.flatnonzero(corrected.by_hand | corrected.marked).tolist()
    named = [names[row] for row in touched if names[row] not in there]
    missing = f"{counted(len(named), 'corrected image')} can no longer be found there, first {named[:1]}"
    require(
        False,
        f"The images are not those of {directory.path}: {missing if named else 'their pixels or their order differ'}. "
        "Bring those images back, or cluster the new ones.",
    )


def _require_able(parent: RunDirectory, method: str, stored: Settings) -> None:
    """Refuse a run that cannot be gone on from."""
    require(
        method == "dccm",
        f"improve goes on from runs of the method 'dccm', and {parent.path} is one of '{method}'. Cluster the images "
        'with dccm, and take the corrections over with "dccm corrections".',
    )
    require(
        not stored.get("mined_by"),
        f"improve goes on from runs that mine their own targets, and {parent.path} has mined_by = "
        f"'{stored.get('mined_by')}'. Cluster the images without it.",
    )
    require(
        (parent.model / "model.json").is_file(),
        f'There is no model in {parent.path} to go on from. Finish the run with "dccm cluster --resume", or take a '
        "whole copy of it.",
    )


def _require_changeable(given: Mapping[str, object]) -> None:
    """Refuse settings of which others would mean other weights than those that a run has."""
    name = next((name for name in given if name in _FIXED), None)
    require(
        name is None,
        f"{name} must be left out with improve, as it is that of the run that is improved, got {given.get(str(name))}.",
    )
