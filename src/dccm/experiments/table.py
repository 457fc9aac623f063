"""A table of scores: mean and deviation over seeds, the best of each column, and what the paper printed."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from dccm.experiments import formats
from dccm.experiments.cells import Cell, Column, Rows
from dccm.experiments.paper import SCORES
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.files import write_atomically, write_csv

__all__ = ["Cell", "Column", "Table", "score_cells"]


class Table(Rows):
    """Rows of cells that can be saved and shown."""

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
