"""What a table of scores holds: cells of means over seeds beside what the paper printed, in named columns and rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal


@dataclass(frozen=True)
class Cell:
    """One quantity of one row."""

    values: tuple[float, ...] = ()
    """For each seed of which the run is there."""
    paper: str = ""
    """As the paper prints it."""
    words: str = ""
    """In the place of values, where the cell says something else."""
    decimals: int = 3

    @property
    def mean(self) -> float | None:
        """Over seeds, as it is shown; None: there is no run."""
        return round(fmean(self.values), self.decimals) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Over seeds, of a sample; None: there is no second seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def shown(self) -> str:
        """Mean and deviation, or a dash where there is nothing."""
        if self.mean is None:
            return self.words or "–"
        shown = f"{self.mean:,.{self.decimals}f}"
        return shown if self.deviation is None else f"{shown} ± {self.deviation:,.{self.decimals}f}"


@dataclass(frozen=True)
class Column:
    """What the cells of a column are."""

    name: str
    group: str = ""
    """Written once above all neighbours that have it, such as a data set."""
    best: Literal["high", "low", "none"] = "high"
    """Which value is the best one."""


@dataclass(frozen=True)
class Rows:
    """Cells by row and column."""

    title: str
    columns: tuple[Column, ...]
    rows: Mapping[str, Sequence[Cell]]
    notes: str = ""
    """Behind the title in the caption."""
    first: str = "system"
    """What the rows are."""

    @property
    def caption(self) -> str:
        """Title and notes."""
        return f"{self.title}. {self.notes[:1].upper()}{self.notes[1:]}" if self.notes else f"{self.title}."

    def is_best(self, row: str, column: int) -> bool:
        """Whether a cell is the best of several in its column."""
        kind = self.columns[column].best
        means = [cells[column].mean for cells in self.rows.values()]
        known = [mean for mean in means if mean is not None]
        if kind == "none" or len(known) < 2:
            return False
        return self.rows[row][column].mean == (max(known) if kind == "high" else min(known))
