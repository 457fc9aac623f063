"""Where the data sets of a grid are, and which of their images a run sees."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dccm.data.datasets import BENCHMARKS, DATASETS, open_benchmark
from dccm.data.read import open_source
from dccm.data.sources.base import Source
from dccm.data.sources.parquet import Parquet
from dccm.data.sources.subset import drawn, of_split
from dccm.errors import UserError, choose, require, short

_LONGEST_NAME = 100
"""Characters: it begins the name of a run's folder."""
_TEST_SHARE = 0.2
"""Of images without a split, as test images of probes."""


@dataclass(frozen=True)
class DataSets:
    """The places of data sets.

    Args:
        root: Folder with the official files of data sets by name; None: in the user's cache folder.
        paths: Other places by name; the name may be that of a data set, whose table of the presets is then used.
    """

    root: str | Path | None = None
    paths: Mapping[str, str] = field(default_factory=dict)

    def why_absent(self, name: str) -> str:
        """Why a data set cannot be read; empty if it can. Nothing is downloaded."""
        try:
            self._all(name, "")
        except UserError as error:
            by_name = name not in self.paths and name in BENCHMARKS and bool(BENCHMARKS[name].remotes)
            way = f'Get it with "dccm prepare {name}", or give' if by_name else "Give"
            return f"{str(error).partition('; put')[0].rstrip('.')}. {way} its place: {name}=PATH."
        return ""

    def n_clusters(self, name: str) -> int | None:
        """How many classes a data set has that no preset knows; None if one does."""
        if name in DATASETS:
            return None
        labels = self._all(name, "").labels
        require(labels is not None, f"{self.paths[name]} must have true classes to be scored by. Add a column label.")
        return len(np.unique(np.asarray(labels)))

    def images(self, name: str, *, limit: int | None = None, split: str = "", variant: str = "") -> Source:
        """The images that a run sees, listed but not read; a limit counts both splits together.

        Args:
            name: Of the data set.
            limit: So many images are drawn; None: all.
            split: `train` or `test`. Images that come without a split get one: a fifth of them, drawn, is for tests.
            variant: Other classes, such as `fine`.
        """
        source = self._all(name, variant)
        source = source if limit is None else drawn(source, limit)
        if source.splits is None:
            source.splits = _drawn_splits(len(source))
        return of_split(source, split) if split else source

    def _all(self, name: str, variant: str) -> Source:
        if name not in self.paths:
            return open_benchmark(name, self.root, variant=variant, download=False)
        source = open_source(self.paths[name])
        if variant:
            require(
                isinstance(source, Parquet), f"{self.paths[name]} must be parquet, to have other classes ({variant})."
            )
            assert isinstance(source, Parquet)
            source.label_by_column(f"{variant}_label")
        return source


def parse_data_sets(words: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Read `name` and `name=path`: all names in their order, and the places of those that have one."""
    paths: dict[str, str] = {}
    names = []
    for word in words:
        name, equals, path = word.partition("=")
        if equals:
            plain = name.replace("_", "").replace("-", "").isalnum() and len(name) <= _LONGEST_NAME
            require(
                plain and path != "",
                f"datasets must be NAME or NAME=PATH, with a plain name of {_LONGEST_NAME} characters at most, got "
                f"'{short(word)}'.",
            )
            require(
                Path(path).exists(), f"There is no file or folder {path} for the data set '{name}'. Correct the path."
            )
            paths[name] = path
        else:
            choose(name, DATASETS, "data set", "dccm datasets")
        names.append(name)
    return tuple(dict.fromkeys(names)), paths


def _drawn_splits(count: int) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    splits = np.full(count, "train")
    splits[np.random.default_rng(0).permutation(count)[: round(_TEST_SHARE * count)]] = "test"
    return splits
