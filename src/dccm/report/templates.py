"""Templates of the pages, in which names of strangers are text and nothing else."""

from importlib.resources import files
from typing import Any

import jinja2

from dccm.errors import visible
from dccm.report.words import amount, decimal_text, number_text, percent_text


def fill(name: str, **values: Any) -> str:
    """A page as text.

    Args:
        name: File of its template, in this folder.
        **values: What the template shows.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number_text, "decimal": decimal_text, "percent": percent_text, "amount": amount}
    # What charts are labelled with comes from files too; lines of the page itself stay lines.
    return visible(environment.get_template(name).render(**values), keep="\n")


def _template(name: str) -> str:
    return files("dccm.report").joinpath(name).read_text("utf-8")


def _shown(value: object) -> object:
    """Names as they may be shown; what is markup already is ours."""
    return visible(value) if type(value) is str else value
