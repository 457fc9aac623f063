"""A figure: what it shows as rows, how it is drawn, and its files, which are the same to the byte for the same rows."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from dccm.errors import UserError, visible
from dccm.files import write_atomically, write_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


class OfDataSet(Protocol):
    """A row of a figure's data."""

    @property
    def dataset(self) -> str:
        """Of which it says something."""


Row = TypeVar("Row", bound=OfDataSet)

COLUMN_WIDTH = 3.3
"""Inches: a column of a paper in two columns."""
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK, GREY = (
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#8c8c8c",
)  # fmt: skip
"""Okabe and Ito's colours, which eyes of all kinds tell apart, with a grey in the place of their yellow."""
COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY)
MUTED = (
    "#332288", "#cc6677", "#117733", "#88ccee", "#ddcc77", "#882255", "#44aa99", "#aa4499", "#999933", "#777777",
)  # fmt: skip
"""Tol's muted colours, for as many classes; with a grey."""
_LONGEST_LABEL = 30
"""Characters of a name in a legend."""
LINES = ("-", "--", "-.", ":")
_FORMATS = ("svg", "pdf", "png")
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
"""No dates and no versions: equal rows give equal files."""
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # It comes with matplotlib, so it is the same everywhere.
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "savefig.dpi": 300,
    "figure.constrained_layout.use": True,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Figure:
    """Rows of data and how they are drawn; can be saved and shown."""

    title: str
    notes: str
    """Behind the title in the caption."""
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    """What is drawn, for the CSV beside the pictures."""
    draw: Callable[["Canvas"], None]
    """Draws on an empty canvas; depends on the rows alone."""
    height: float
    """Inches; the width is that of a column."""
    findings: tuple[str, ...] = ()
    """What can be read off it in a sentence each, with what the paper prints."""

    @property
    def caption(self) -> str:
        """Title and notes."""
        return f"{self.title}. {self.notes}"

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write it as SVG, PDF and PNG, and its data as CSV."""
        paths = [folder / f"{name}.{kind}" for kind in _FORMATS]
        for path, kind in zip(paths, _FORMATS, strict=True):
            write_atomically(path, self.picture(kind, name))
        write_csv(folder / f"{name}.csv", self.columns, ([_plain(value) for value in row] for row in self.rows))
        return [*paths, folder / f"{name}.csv"]

    def picture(self, kind: str, name: str = "") -> bytes:
        """The file of a picture: svg, pdf or png. The name keeps ids of several on one page apart."""
        with _styled(name or self.title):
            from matplotlib.figure import Figure as Canvas

            canvas, buffer = Canvas(figsize=(COLUMN_WIDTH, self.height)), io.BytesIO()
            if self.rows:
                self.draw(canvas)
            else:
                canvas.text(0.5, 0.5, "no finished run", ha="center", va="center", color=GREY)
            canvas.savefig(buffer, format=kind, metadata=_METADATA[kind])
        return buffer.getvalue()

    def html(self) -> str:
        """As `<svg>`, with the findings below it."""
        text = self.picture("svg").decode()
        label = escape(self.caption, quote=True)
        drawing = text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
        return drawing + "".join(f"<p>{escape(finding)}</p>" for finding in self.findings)

    def text(self) -> str:
        """The findings; the picture is in its files."""
        return "\n".join([self.caption, *(f"  {finding}" for finding in self.findings)]) + "\n"


def _plain(value: Any) -> Any:
    """Six digits of a number are enough for any picture."""
    return f"{value:.6g}" if isinstance(value, float) else value


@contextmanager
def _styled(name: str) -> Iterator[None]:
    """In the one style of all figures; matplotlib is imported no earlier than this."""
    try:
        import matplotlib
    except ImportError as error:
        raise UserError("Figures need matplotlib. Get it with: pip install 'dccm[figures]'.") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # Whatever a matplotlibrc of the user says.
        settings: Any = _STYLE | {"svg.hashsalt": name}
        matplotlib.rcParams.update(settings)
        yield


def panels(canvas: "Canvas", titles: Sequence[str]) -> Iterator[tuple[str, "Axes"]]:
    """One plot below the other, each with what it shows."""
    for title, axes in zip(titles, canvas.subplots(len(titles), 1, squeeze=False)[:, 0], strict=True):
        axes.set_label(title)
        yield title, axes


def by_dataset(rows: Sequence[Row], draw: "Callable[[Axes, list[Row]], None]") -> "Callable[[Canvas], None]":
    """How a figure with a plot for each data set is drawn.

    Args:
        rows: Its data; each names its data set.
        draw: Draws those of one data set.
    """

    def whole(canvas: "Canvas") -> None:
        for dataset, axes in panels(canvas, list(dict.fromkeys(row.dataset for row in rows))):
            draw(axes, [row for row in rows if row.dataset == dataset])

    return whole


def legend_above(axes: "Axes", columns: int) -> None:
    """Name what is drawn above the plot, where it hides nothing; and the plot itself, if it is one of several."""
    several = len(axes.figure.axes) > 1
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderaxespad=0.2,
        columnspacing=1.2,
        title=axes.get_label() if several else None,
        title_fontproperties={"size": 8},
        alignment="left",
    )


def beside_paper(value: float, paper: str) -> str:
    """A share with three digits, and what the paper prints, if it does."""
    return f"{value:.3f}" + (f" (paper: {paper})" if paper else "")


def as_label(name: str) -> str:
    """A name from a file as a legend may show it: it is no formula, is not left out, and is not longer than the plot.

    Args:
        name: Of a class; matplotlib takes what is between two $ for mathematics, and _ in front for a hidden name.
    """
    name = visible(name if len(name) <= _LONGEST_LABEL else name[:_LONGEST_LABEL] + "...")
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def class_colours(classes: Iterable[str]) -> dict[str, Any]:
    """A colour for each class, in their order."""
    import matplotlib

    names = sorted(set(classes), key=lambda name: (len(name), name) if name.isdigit() else (0, name))
    if len(names) <= len(MUTED):
        return dict(zip(names, MUTED))
    return dict(zip(names, matplotlib.colormaps["turbo"](np.linspace(0, 1, len(names)))))
