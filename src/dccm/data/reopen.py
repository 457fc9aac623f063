"""The source of a finished run, opened once more by what the run noted of it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dccm.data.datasets import BENCHMARKS, open_benchmark
from dccm.data.read import open_source
from dccm.data.sources.base import Source
from dccm.data.sources.subset import of_split


def reopened(place: str) -> Source | None:
    """The source at a place; None for images that were nowhere but in memory.

    Args:
        place: As a source states it: a path, perhaps followed by `#` and the name of a data set, and by `?split=`.
    """
    if not place:
        return None
    whole, _, split = place.partition("?split=")
    path, _, name = whole.rpartition("#")
    benchmark, _, variant = name.partition(".")
    if path == "scikit-learn":
        source = open_benchmark(benchmark)
    elif path and benchmark in BENCHMARKS:
        source = BENCHMARKS[benchmark].read(Path(path), variant)
        source.place = whole
    else:
        source = open_source(whole)
    return of_split(source, split) if split else source


def places_in(source: Source, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Where in a source each of these images is; -1 for those that are not there any more.

    Args:
        source: The images as they are now.
        names: Of the images of a run, in the order of the source.
    """
    places = np.full(len(names), -1, dtype=np.int64)
    if len(source) == len(names):
        both = (place for place, name in enumerate(names) if source.names[place] == name)
        found = np.fromiter(both, dtype=np.int64)
        places[found] = found
        if len(found) == len(names):
            return places
    known = {name: place for place, name in enumerate(source.names)}
    return np.array([known.get(name, -1) for name in names], dtype=np.int64)
