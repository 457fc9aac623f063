"""What a grid will cost, from one short epoch of each kind of run.

Time is what processors computed, not what a clock on the wall showed: other programs make a short epoch take ten times
as long, and will not be there all the time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import torch

from dccm.arrays import Inputs
from dccm.config import parse_budget
from dccm.data.read import read_images
from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets
from dccm.experiments.request import known_data_set
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need
from dccm.runs.config import RunConfig, has_epochs, make_config
from dccm.runs.fitting import new_model
from dccm.training.loop import train

_IMAGES = 256
"""In the epoch that is timed."""


def estimated(needs: list[Need], data: DataSets, threads: int | None = None) -> dict[str, float]:
    """Seconds that each run will take, by key, if other programs leave it its processors.

    Runs of methods without epochs, and what cannot be timed, are left out.

    Args:
        needs: The runs.
        data: Where the data sets are.
        threads: With which each run will compute; None: as torch chooses.
    """

    @cache
    def images(name: str, limit: int | None) -> tuple[Inputs, int]:
        return _sample(name, data, limit)

    @cache
    def pace(spec: RunSpec) -> tuple[float, float]:
        with computing_with(threads):
            return _pace(spec, images(spec.dataset, spec.limit)[0], data)

    found = {}
    for need in needs:
        budget = parse_budget(need.spec.budget) if need.spec.budget else {}
        if "budget_minutes" in budget:
            found[need.spec.key] = 60 * float(str(budget["budget_minutes"]))
        elif has_epochs(need.spec.method):
            try:
                per_image, passes = pace(_alike(need.spec))
                count = images(need.spec.dataset, need.spec.limit)[1]
            except UserError:  # It will be noted when the run is made.
                continue
            epochs = _epochs(need.spec) if not budget else float(str(budget["budget_passes"])) / passes
            found[need.spec.key] = per_image * count * epochs
    return found


def _alike(spec: RunSpec) -> RunSpec:
    """The run that stands for all whose steps cost the same, or nearly so: only what changes the work is left."""
    kept = tuple((name, value) for name, value in spec.settings if name in _COSTLY)
    return replace(spec, seed=0, settings=kept, budget="", split="", after=())


_COSTLY = frozenset(
    {"uses", "clean_weight", "perturbed_weight", "critic_positions", "mini_batch", "shallow_map", "starts"}
)


def _epochs(spec: RunSpec) -> float:
    return _config(spec, {}).training.epochs


def _config(spec: RunSpec, more: dict[str, object]) -> RunConfig:
    return make_config(spec.method, spec.preset, known_data_set(spec.dataset), dict(spec.settings) | more)


def _sample(name: str, data: DataSets, limit: int | None) -> tuple[Inputs, int]:
    """Some images, and how many a run will have."""
    count = len(data.images(name, limit=limit))
    settings = make_config("kmeans", "paper", known_data_set(name)).data
    few = read_images(data.images(name, limit=min(_IMAGES, count)), image_size=settings.image_size, fit=settings.fit)
    return few.images, count


def _pace(spec: RunSpec, images: Inputs, data: DataSets) -> tuple[float, float]:
    """Seconds per image and epoch, and passes per epoch."""
    clusters = data.n_clusters(spec.dataset)
    more: dict[str, object] = {"epochs": 1}
    more |= {"n_clusters": clusters} if clusters else {}
    config = _config(spec, more)
    model = new_model(images, config)
    loader, watch = model.loader(images), Watch()
    history = train(model.learner, loader, config.training)
    return watch.seconds(loader.device.type) / len(images), history[-1]["passes"]


@contextmanager
def computing_with(threads: int | None) -> Iterator[None]:
    """As a run of the grid will; None: as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Watch:
    """Measures from its making on how long this process would have taken alone on the machine."""

    def __init__(self) -> None:
        self._started = self._now()

    def seconds(self, device: str) -> float:
        """What the clock says of a GPU, which others do not slow down; else what the busiest thread computed.

        That is the one which asks, as it takes its share of all that torch does; or all of them in equal parts.
        """
        wall, process, thread = (now - started for now, started in zip(self._now(), self._started))
        return wall if device != "cpu" else max(thread, process / torch.get_num_threads())

    @staticmethod
    def _now() -> tuple[float, float, float]:
        return time.monotonic(), time.process_time(), time.thread_time()


def in_words(seconds: float) -> str:
    """A time that is only roughly known."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"
