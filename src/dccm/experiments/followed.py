"""Runs that figures look into while they learn: what they kept on the way, and what of it is drawn."""

from typing import Any

from dccm.data.images import ImageSet
from dccm.errors import require
from dccm.experiments.request import Request
from dccm.experiments.spec import RunSpec
from dccm.runs.directory import RunDirectory
from dccm.runs.milestones import Milestone, read_milestones

MILESTONES = 10
"""Steps after which a run keeps its predictions."""


def followed(request: Request, method: str, dataset: str, **others: Any) -> list[RunSpec]:
    """The run of a method on all images, with each seed, as all figures want it: so they share it."""
    return request.over_seeds(method, dataset, settings={"milestones": MILESTONES}, **others)


def kept(directory: RunDirectory, images: ImageSet) -> list[Milestone]:
    """What a run kept, for the images that it had."""
    found = list(read_milestones(directory.milestones))
    require(bool(found), f"{directory.path} has kept no predictions. Make the run anew with milestones = {MILESTONES}.")
    count, here = len(found[0].prediction), len(images.images)
    require(count == here, f"{directory.path} is of {count:,} images, and now there are {here:,}. Give the same ones.")
    return found
