"""Choose the number of clusters before a run."""

from dataclasses import replace

import numpy as np

from dccm.arrays import Floats, Inputs
from dccm.config import Settings
from dccm.data.loader import Loader
from dccm.errors import require
from dccm.grouping.hierarchy import Clusters, join_clusters
from dccm.grouping.number_of_clusters import Curves, Partition, judge, numbers_between, points_of, suggest
from dccm.machine import choose_device
from dccm.runs.choice import Asked, Choice, asked_number, read_choice
from dccm.runs.config import RunConfig
from dccm.runs.directory import RunDirectory
from dccm.training.progress import OnProgress, Stage, ignore

_IMAGES = 10_000
"""That are looked at, at most: with more, the curves hardly change."""
_IMAGES_PER_CLUSTER = 50
"""But so many for each of the most clusters, if there are."""
_BYTES = 2**29
"""Of images in memory at once, unless so few large ones are left that clusters lack images."""
_FEWEST_PER_CLUSTER = 10


def take_asked(settings: Settings) -> Asked | None:
    """Take a range or `auto` out of settings; a number stays in them, as a number."""
    wanted = settings.get("n_clusters")
    if not isinstance(wanted, str):
        return None
    asked = asked_number(wanted)
    if isinstance(asked, int):
        settings["n_clusters"] = asked
        return None
    del settings["n_clusters"]
    return asked


def require_same_choice(directory: RunDirectory, asked: Asked) -> None:
    """A resumed run keeps the number that was chosen for it, if the same was asked for then."""
    choice = read_choice(directory.choice)
    before = "a number that was given" if choice is None else choice.asked
    require(
        choice is not None and choice.asked == asked.text,
        f"The run in {directory.path} was begun with n_clusters = {before}, now it is {asked.text}. "
        "Resume without it, or choose another output folder.",
    )


def chosen(
    inputs: Inputs, asked: Asked | None, config: RunConfig, on_progress: OnProgress
) -> tuple[RunConfig, Choice | None]:
    """The settings with the number of clusters that was chosen, and how it was; as they are if nothing was asked."""
    if asked is None:
        return config, None
    choice = choose_number(inputs, asked, config, on_progress)
    return replace(config, data=replace(config.data, n_clusters=choice.suggestion)), choice


def choose_number(inputs: Inputs, asked: Asked, config: RunConfig, on_progress: OnProgress = ignore) -> Choice:
    """Suggest a number of clusters.

    Args:
        inputs: Images, or vectors in their place.
        asked: The numbers to choose from.
        config: Device and seed, and what the vectors are of; its own number of clusters is not looked at.
        on_progress: Called as it gets on.
    """
    low, high = asked.within(len(inputs))
    on_progress(Stage("choosing K", 0.0))
    seed, device = config.training.seed, choose_device(config.training.device)
    loader = Loader(_sample(inputs, high, seed), batch_size=1000, seed=seed, device=device)
    points = points_of(loader)
    curves, found = judge(points, numbers_between(low, high), seed, lambda done: on_progress(Stage("choosing K", done)))
    suggested = suggest(curves)
    tree = merges_of(points, found[curves.candidates.index(suggested.number)])
    space = "pixels" if loader.images.dtype == np.uint8 else f"features of {config.data.encoder}"
    return Choice(asked.text, space, len(points), seed, *_lists(curves), *suggested, tree)


def _sample(inputs: Inputs, high: int, seed: int) -> Inputs:
    """As many images as are looked at, drawn at random and in their own order."""
    room = max(_BYTES // max(inputs[0].nbytes, 1), _FEWEST_PER_CLUSTER * high)
    count = min(len(inputs), max(_IMAGES, _IMAGES_PER_CLUSTER * high), room)
    rows = np.sort(np.random.default_rng(seed).choice(len(inputs), count, replace=False))
    return inputs if count == len(inputs) else inputs[rows]


def _lists(curves: Curves) -> tuple[list[int], list[float], list[float], list[float], list[float]]:
    """The curves as JSON has them."""
    stability, score = curves.stability.mean(axis=0), curves.scores()
    values = [curve.round(6).tolist() for curve in (curves.links, curves.separation, stability, score)]
    return curves.candidates, *values


def merges_of(points: Floats, found: Partition) -> list[list[float]]:
    """How clusters merge, by Ward's linkage, cheapest first."""
    groups = np.unique(found.clusters, return_inverse=True)[1]
    merges = join_clusters(Clusters(points, groups, "ward"), lambda _: None)
    return [[merge.one, merge.other, round(merge.cost, 6)] for merge in sorted(merges, key=lambda merge: merge.cost)]
