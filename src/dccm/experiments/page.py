"""One page of all tables and figures, with a link to the report of each run; it loads nothing from outside."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need, Shown
from dccm.files import write_atomically

_SCORES = ("nmi", "acc", "ari")


def write_page(
    results: Results,
    titles: dict[str, str],
    shown: dict[str, Shown],
    saved: dict[str, list[Path]],
    needs: list[Need],
    missing: dict[str, str],
) -> Path:
    """Write `index.html` into a results folder.

    Args:
        results: The folder.
        titles: Of tables and figures, by name.
        shown: They themselves.
        saved: Their files.
        needs: All runs.
        missing: What is not there, with the reason.
    """
    sections = [
        {
            "name": name,
            "title": titles[name],
            "caption": one.caption,
            "body": Markup(one.html()),  # Made by us; each escapes what it holds.
            "files": [path.relative_to(results.path).as_posix() for path in saved[name]],
        }
        for name, one in shown.items()
    ]
    runs = [_row(results, need.spec) for need in needs if results.is_finished(need.spec)]
    text = _template().render(sections=sections, runs=runs, missing=missing)
    write_atomically(results.page, text)
    return results.page


def _row(results: Results, spec: RunSpec) -> dict[str, Any]:
    """A run in the list at the end of the page."""
    result, record = results.result(spec), results.record(spec)
    assert result is not None, "Only finished runs are listed."
    scores = [f"{result.scores[name]:.3f}" for name in _SCORES] if result.scores else [""] * len(_SCORES)
    memory = result.cost.peak_memory_mb
    return {
        "label": spec.label(),
        "report": results.run(spec).report.relative_to(results.path).as_posix(),
        "scores": scores,
        "images": f"{result.n_images:,}",
        "passes": f"{result.cost.passes:.1f}",
        "seconds": f"{result.cost.seconds:,.0f}",
        "memory": "" if memory is None else f"{memory:,.0f}",
        "revision": (record.revision or "")[:8],
    }


def _template() -> jinja2.Template:
    text = files("dccm.experiments").joinpath("page.html.jinja").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(text)
