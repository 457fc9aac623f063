"""What runs kept while they learnt, for figures; `Request.spec` asks those of DCCM and DAC as they are to do so."""

from dccm.data.images import ImageSet
from dccm.errors import require
from dccm.experiments.request import MILESTONES
from dccm.runs.directory import RunDirectory
from dccm.runs.milestones import Milestone, read_milestones


def kept(directory: RunDirectory, images: ImageSet) -> list[Milestone]:
    """What a run kept, for the images that it had."""
    found = list(read_milestones(directory.milestones))
    require(bool(found), f"{directory.path} has kept no predictions. Make the run anew with milestones = {MILESTONES}.")
    count, here = len(found[0].prediction), len(images.images)
    require(count == here, f"{directory.path} is of {count:,} images, and now there are {here:,}. Give the same ones.")
    return found
