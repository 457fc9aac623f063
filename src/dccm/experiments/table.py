"""A table of scores: mean and deviation over seeds, the best of each column, and what the paper printed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

from dccm.experiments import formats
from dccm.experiments.paper import SCORES
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.files import write_atomically, write_csv


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
class Table:
    """Rows of cells; can be saved and shown."""

    title: str
    columns: tuple[Column, ...]
    rows: dict[str, Sequence[Cell]]
    notes: str = ""
    """Behind the title in the caption."""
    first: str = "system"
    """What the rows are."""

    @property
    def caption(self) -> str:
        """Title and notes."""
        return f"{self.title}. {self.notes}" if self.notes else f"{self.title}."

    def is_best(self, row: str, column: int) -> bool:
        """Whether a cell is the best of several in its column."""
        kind = self.columns[column].best
        means = [cells[column].mean for cells in self.rows.values()]
        known = [mean for mean in means if mean is not None]
        if kind == "none" or len(known) < 2:
            return False
        return self.rows[row][column].mean == (max(known) if kind == "high" else min(known))

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write it as Markdown, CSV and LaTeX."""
        paths = [folder / f"{name}{suffix}" for suffix in (".md", ".csv", ".tex")]
        write_atomically(paths[0], formats.markdown(self))
        write_csv(paths[1], formats.CSV_COLUMNS, formats.csv_rows(self))
        write_atomically(paths[2], formats.latex(self, name))
        return paths

    def html(self) -> str:
        """As `<table>`."""
        return formats.html(self)

    def text(self) -> str:
        """As plain text."""
        return formats.text(self)


def score_cells(
    results: Results, specs: Iterable[RunSpec], printed: Sequence[str] = (), scores: Sequence[str] = SCORES
) -> list[Cell]:
    """NMI, ACC and ARI of a run over its seeds, beside what the paper printed."""
    found = [results.scores(spec) for spec in specs]
    values = [tuple(one[name] for one in found if name in one) for name in scores]
    return [Cell(value, printed[place] if place < len(printed) else "") for place, value in enumerate(values)]
