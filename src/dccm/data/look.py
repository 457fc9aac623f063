"""What images are like, from the headers of some of them."""

import warnings

import numpy as np

from dccm.data.decode import Header, header_of
from dccm.data.images import ImageSet
from dccm.data.passing import require_means
from dccm.data.sources.base import Source

_SAMPLED = 100
"""Images whose header is looked at."""
_PHOTOGRAPH = 48
"""The shorter side from which on an image can show what a network for photographs looks for."""


def sampled(source: Source) -> list[Header]:
    """The headers of up to 100 images that can be read."""
    step = 1 if source.in_order else max(1, len(source) // _SAMPLED)
    headers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Decoding tells what is wrong, with its reason.
        for place in range(0, min(len(source), step * _SAMPLED), step):
            try:
                headers.append(header_of(source.read(place)))
            except Exception as error:
                require_means(error)  # Else a lack of them would decide the size of all images.
    return headers


def are_photographs(images: Source | ImageSet, side: int | None = None) -> bool:
    """Whether most images are in colour, and their median shorter side is 48 pixels or more.

    Args:
        images: What `open_source` gives, or an `ImageSet`.
        side: To which they will be brought; None: they keep theirs.
    """
    headers = [header_of(images.images[0])] if isinstance(images, ImageSet) else sampled(images)
    if not headers:
        return False
    median = float(np.median([header.side for header in headers]))
    return min(median, side or median) >= _PHOTOGRAPH and sum(header.colour for header in headers) * 2 > len(headers)
