"""A table as Markdown, CSV, LaTeX, HTML and text."""

import io
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import TextIO

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table as RichTable

from dccm.experiments.cells import Rows

CSV_COLUMNS = ("row", "group", "column", "mean", "deviation", "runs", "paper", "words")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "–": "--", "≤": r"$\le$", "≥": r"$\ge$", "α": r"$\alpha$", "β": r"$\beta$", "×": r"$\times$",
}  # fmt: skip
_WIDE = 240
"""Columns of text without a terminal."""


def markdown(table: Rows) -> str:
    """With the paper's numbers small behind ours."""

    def cell(row: str, column: int) -> str:
        one = table.rows[row][column]
        shown = f"**{one.shown}**" if table.is_best(row, column) else one.shown
        return _piped(shown) + (f" <sub>{_piped(one.paper)}</sub>" if one.paper else "")

    heads = [" ".join(filter(None, (column.group, column.name))) for column in table.columns]
    lines = [f"**{_piped(table.caption)}**", "", _row([table.first, *map(_piped, heads)])]
    lines.append("|---" + "|---:" * len(heads) + "|")
    lines += [_row([_piped(name), *(cell(name, place) for place in range(len(heads)))]) for name in table.rows]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _piped(text: str) -> str:
    """Text that ends no cell and begins no markup."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_").replace("~", "\\~")


def csv_rows(table: Rows) -> Iterator[tuple[object, ...]]:
    """One row for each cell."""
    for name, cells in table.rows.items():
        for column, cell in zip(table.columns, cells, strict=True):
            spread = "" if cell.deviation is None else f"{cell.deviation:.6g}"
            mean = "" if not cell.values else f"{sum(cell.values) / len(cell.values):.6g}"
            yield name, column.group, column.name, mean, spread, len(cell.values), cell.paper, cell.words


def latex(table: Rows, label: str) -> str:
    """With booktabs; the paper's numbers in grey want xcolor."""

    def cell(row: str, column: int) -> str:
        one = table.rows[row][column]
        shown = in_latex(one.shown)
        shown = rf"\textbf{{{shown}}}" if table.is_best(row, column) else shown
        return shown + (rf" \textcolor{{gray}}{{\scriptsize {in_latex(one.paper)}}}" if one.paper else "")

    count = len(table.columns)
    lines = [
        r"% \usepackage{booktabs,xcolor}",
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{in_latex(table.caption)}}}",
    ]
    lines += [rf"\label{{tab:{label}}}", rf"\begin{{tabular}}{{l{'r' * count}}}", r"\toprule", *_latex_groups(table)]
    lines.append(
        " & ".join(in_latex(name) for name in (table.first, *(column.name for column in table.columns))) + r" \\"
    )
    lines.append(r"\midrule")
    lines += [" & ".join([in_latex(name), *(cell(name, at) for at in range(count))]) + r" \\" for name in table.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table*}"]) + "\n"


def in_latex(text: str) -> str:
    """Text in which no letter means anything else."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _groups(table: Rows) -> list[tuple[str, int]]:
    """What stands above neighbouring columns, and over how many."""
    return [(name, len(list(columns))) for name, columns in groupby(column.group for column in table.columns)]


def _latex_groups(table: Rows) -> list[str]:
    """The line of groups, and a rule below each; nothing if there are none."""
    groups = _groups(table)
    if not any(name for name, _ in groups):
        return []
    cells, rules, at = [""], [], 2
    for name, count in groups:
        cells.append(rf"\multicolumn{{{count}}}{{c}}{{{in_latex(name)}}}")
        rules += [rf"\cmidrule(lr){{{at}-{at + count - 1}}}"] if name else []
        at += count
    return [" & ".join(cells) + r" \\", "".join(rules)]


def html(table: Rows) -> str:
    """With classes `best` and `paper`."""

    def cell(row: str, column: int) -> str:
        one = table.rows[row][column]
        best = ' class="best"' if table.is_best(row, column) else ""
        paper = f' <span class="paper">{escape(one.paper)}</span>' if one.paper else ""
        return f"<td{best}>{escape(one.shown)}{paper}</td>"

    groups = "".join(f'<th colspan="{count}">{escape(name)}</th>' for name, count in _groups(table))
    heads = "".join(f"<th>{escape(column.name)}</th>" for column in table.columns)
    body = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(cell(name, place) for place in range(len(table.columns)))}</tr>\n"
        for name in table.rows
    )
    above = f"<tr><th></th>{groups}</tr>" if any(name for name, _ in _groups(table)) else ""
    return f"<table><thead>{above}<tr><th>{escape(table.first)}</th>{heads}</tr></thead>\n<tbody>{body}</tbody></table>"


def text(table: Rows) -> str:
    """For a file, or a terminal without colours."""
    stream = io.StringIO()
    print_rich(table, stream)
    return stream.getvalue()


def print_rich(table: Rows, stream: TextIO) -> None:
    """With the best in bold and the paper's numbers in grey, if the stream is a terminal; no column is ever cut."""
    Console(file=stream, width=_WIDE).print(_rich(table))
    print(table.caption, file=stream)


def _rich(table: Rows) -> RichTable:
    shown = RichTable(box=None, pad_edge=False)
    shown.add_column(plain(table.first))
    for column in table.columns:
        shown.add_column(plain("\n".join(filter(None, (column.group, column.name)))), justify="right")
    for name, cells in table.rows.items():
        words = []
        for place, cell in enumerate(cells):
            bold = f"[bold]{plain(cell.shown)}[/bold]" if table.is_best(name, place) else plain(cell.shown)
            words.append(bold + (f" [bright_black]{plain(cell.paper)}[/bright_black]" if cell.paper else ""))
        shown.add_row(plain(name), *words)
    return shown
