"""How the clusters of a run merge, as a drawing."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dccm.errors import counted, visible
from dccm.runs.contents import Assignments

MOST_LEAVES = 200
"""Clusters in the drawing; of more, the largest are shown."""
_ROWS = 65536
_WIDTH, _LEFT, _RIGHT = 640, 150, 628
"""The drawing, and the part of it that the lines take."""
_STEP, _TOP, _BELOW = 26, 8, 34
"""Height of a leaf, and room above and below."""
_PICTURE = 22
_LETTERS = 16
"""Of a name, beside the picture."""


class Leaf(NamedTuple):
    """A cluster in the drawing."""

    title: str
    anchor: str
    """Place of its card on the page."""
    size: int
    picture: str
    """Data URI of an image of it; empty: none is kept."""


class _Node(NamedTuple):
    height: float
    y: float


def cluster_tree(embedding: NDArray[np.float32], assignments: Assignments) -> tuple[list[int], NDArray[np.float64]]:
    """The clusters of the tree, and how they merge: average linkage of their mean features.

    Args:
        embedding: Feature of each image, (N, D).
        assignments: The clusters of the same images.

    Returns:
        Numbers of the clusters, L of them, and the merges as SciPy has them, (L - 1, 4); none if there is no tree.
    """
    from scipy.cluster.hierarchy import linkage, optimal_leaf_ordering

    sizes = np.bincount(assignments.clusters)
    largest = np.argsort(-sizes, kind="stable")[:MOST_LEAVES]
    shown = np.sort(largest[sizes[largest] > 0])
    means = _means(embedding, assignments.clusters, len(sizes))[shown]
    if len(shown) < 2 or not np.isfinite(means).all():
        return [], np.zeros((0, 4))
    merges = linkage(means, "average")
    return [int(number) for number in shown], optimal_leaf_ordering(merges, means)


def _means(embedding: NDArray[np.float32], clusters: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Mean feature of each cluster, (count, D), read block by block."""
    sums = np.zeros((count, embedding.shape[1]))
    for start in range(0, len(clusters), _ROWS):
        np.add.at(sums, clusters[start : start + _ROWS], embedding[start : start + _ROWS])
    return sums / np.maximum(np.bincount(clusters, minlength=count), 1)[:, None]


def tree_chart(leaves: Sequence[Leaf], merges: NDArray[np.float64], *, title: str) -> Markup:
    """Draw a tree that lies on its side: leaves at the left, each merge as far to the right as its parts lie apart.

    Args:
        leaves: The clusters.
        merges: As SciPy has them, (L - 1, 4).
        title: What the drawing shows, for those who cannot see it.

    Returns:
        The drawing, or nothing when there are fewer than two clusters.
    """
    if len(leaves) < 2:
        return Markup("")
    order = _leaf_order(merges, len(leaves))
    places = {leaf: _TOP + _STEP * (row + 0.5) for row, leaf in enumerate(order)}
    bottom = _TOP + _STEP * len(leaves)
    parts = [_leaf(leaves[leaf], y) for leaf, y in places.items()]
    parts += [_lines(merges, places), _axis(float(merges[-1, 2]), bottom)]
    return Markup('<svg class="chart tree" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, bottom + _BELOW, f"{title}: {len(leaves)} clusters", Markup("").join(parts)
    )


def _leaf_order(merges: NDArray[np.float64], count: int) -> list[int]:
    """Leaves from top to bottom, so that no lines cross."""
    order, waiting = [], [count + len(merges) - 1]
    while waiting:
        node = waiting.pop()
        if node < count:
            order.append(node)
        else:
            waiting += [int(merges[node - count, 1]), int(merges[node - count, 0])]
    return order


def _leaf(leaf: Leaf, y: float) -> Markup:
    link = Markup('<a href="#{}"><text class="label" x="{}" y="{:.1f}">{}</text>{}</a>')
    title = visible(leaf.title)
    short = title if len(title) <= _LETTERS else f"{title[: _LETTERS - 1]}…"
    picture = Markup("")
    if leaf.picture:
        place = (_LEFT - _PICTURE - 8, y - _PICTURE / 2, _PICTURE, _PICTURE)
        picture = Markup('<image href="{}" x="{}" y="{:.1f}" width="{}" height="{}"/>').format(leaf.picture, *place)
    tooltip = Markup("<title>{}: {}</title>").format(title, counted(leaf.size, "image"))
    return link.format(leaf.anchor, 0, y + 4.5, short, picture + tooltip)


def _lines(merges: NDArray[np.float64], places: Mapping[int, float]) -> Markup:
    """A bracket for each merge."""
    nodes = {leaf: _Node(0.0, y) for leaf, y in places.items()}
    bracket = Markup('<path d="M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}"><title>{}</title></path>')
    paths = []
    for number, (one, other, height, _) in enumerate(merges, start=len(places)):
        first, second = nodes[int(one)], nodes[int(other)]
        nodes[number] = _Node(height, (first.y + second.y) / 2)
        top = float(merges[-1, 2])
        ends = (_x(first.height, top), first.y, _x(height, top), second.y, _x(second.height, top))
        paths.append(bracket.format(*ends, f"merge at a distance of {height:.3g}"))
    return Markup('<g class="series-0">{}</g>').format(Markup("").join(paths))


def _x(height: float, top: float) -> float:
    return _LEFT + height / (top or 1.0) * (_RIGHT - _LEFT)


def _axis(top: float, bottom: float) -> Markup:
    text = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
    line = Markup('<line class="axis" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>').format(_LEFT, _RIGHT, y=bottom + 4)
    ends = text.format(_LEFT, bottom + 22, "start", "0") + text.format(_RIGHT, bottom + 22, "end", f"{top:.3g}")
    middle = text.format((_LEFT + _RIGHT) / 2, bottom + 22, "middle", "Distance of the mean features")
    return line + ends + middle
