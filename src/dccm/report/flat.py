"""The embedding on a plane: a drawing that works by itself, and tiny images that a script shows at each point."""

import base64
import hashlib
import warnings
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dccm.errors import visible
from dccm.report.gathered import RunFiles
from dccm.report.pictures import Sheet, sheet
from dccm.report.words import decimal_text
from dccm.runs.members import mapped_rows

_SIDE, _MARGIN = 640, 16
"""Of the drawing."""
_PERPLEXITY = 30.0
_STEPS = 500
_FEWEST = 8
"""Images of which a map says something."""
_LARGEST = 64
"""Numbers of a feature that count: of more, the first principal components."""
_COLOURS = 12
Rows = NDArray[np.int64]


class FlatMap(NamedTuple):
    """The map of a run."""

    drawing: Markup
    images: int
    """How many are on it."""
    sheet: Sheet | None
    """Their pictures, in the order of the points; None: none were kept."""


class Script(NamedTuple):
    """The one script of the page."""

    text: Markup
    checksum: str
    """By which the page's own policy lets it run, and nothing else."""


def flat_map(run: RunFiles) -> FlatMap | None:
    """The map; None where there are too few images, or no features."""
    if run.embedding is None:
        return None
    rows = run.on_map.row if run.on_map else mapped_rows(len(run.embedding))
    places = _places(np.asarray(run.embedding[rows], dtype=np.float64)) if len(rows) >= _FEWEST else None
    if places is None:
        return None
    return FlatMap(_drawing(run, rows, places), len(rows), sheet(run.on_map.images) if run.on_map else None)


def map_script() -> Script:
    """What shows the image of a point that the pointer is near."""
    text = files("dccm.report").joinpath("map.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return Script(Markup(text), f"sha256-{digest}")


def _places(features: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Places such that neighbours stay neighbours, (M, 2), by t-SNE; None if all images are alike."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        points = features / np.maximum(lengths, 1e-12)
    if not np.isfinite(points).all() or float(points.std(axis=0).max()) < 1e-6:
        return None
    if points.shape[1] > _LARGEST:
        points = PCA(min(_LARGEST, len(points)), random_state=0, svd_solver="randomized").fit_transform(points)
    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    start: Any = "pca" if points.shape[1] > 1 else "random"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = TSNE(2, init=start, perplexity=perplexity, max_iter=_STEPS, random_state=0).fit_transform(points)
    places: NDArray[np.float64] = np.asarray(made, dtype=np.float64)
    return places if np.isfinite(places).all() else None


def _drawing(run: RunFiles, rows: Rows, places: NDArray[np.float64]) -> Markup:
    """A point for each image, and the name of each cluster in its middle."""
    low, high = places.min(axis=0), places.max(axis=0)
    scale = (_SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    flat = (places - (low + high) / 2) * scale + _SIDE / 2
    clusters, confidences = run.assignments.clusters[rows], run.assignments.confidences[rows]
    point = Markup('<circle class="k{}" cx="{:.1f}" cy="{:.1f}" r="4"><title>{}\n{}{}</title></circle>')
    points = [
        point.format(
            clusters[i] % _COLOURS,
            flat[i, 0],
            flat[i, 1],
            visible(run.assignments.paths[row]),
            visible(run.groups[clusters[i]].title),
            f", confidence {decimal_text(confidences[i])}" if np.isfinite(confidences[i]) else "",
        )
        for i, row in enumerate(rows)
    ]
    label = Markup('<text x="{:.1f}" y="{:.1f}">{}</text>')
    labels = []
    for place in np.unique(clusters):
        x, y = np.median(flat[clusters == place], axis=0)
        group = run.groups[place]
        short = visible(group.name[:24]) or (str(group.number) if group.number >= 0 else "none")
        labels.append(label.format(x, y + 5, short))
    return Markup(
        '<svg id="map-points" class="map" viewBox="0 0 {0} {0}" role="img" aria-label="{1}">{2}{3}</svg>'
    ).format(
        _SIDE,
        f"Map of {len(rows)} images in {len(labels)} clusters",
        Markup("").join(points),
        Markup("").join(labels),
    )
