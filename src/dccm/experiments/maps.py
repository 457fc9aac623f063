"""Features of many dimensions on a plane, by t-SNE."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dccm.arrays import Floats

TOOLS = ("openTSNE", "scikit-learn")
_PERPLEXITY = 30.0
"""Neighbours of a point, as far as there are enough points."""
_SEED = 0


class FlatMap(NamedTuple):
    """Places of points on a plane."""

    tool: str
    """What computed them: its places differ from those of others."""
    places: npt.NDArray[np.floating[Any]]
    """(N, 2)"""


def flat_map(features: Floats) -> FlatMap:
    """Places of points such that neighbours stay neighbours, by openTSNE where it is installed.

    Args:
        features: (N, D).
    """
    perplexity = min(_PERPLEXITY, max(1.0, (len(features) - 1) / 3))
    given: dict[str, Any] = {"perplexity": perplexity, "random_state": _SEED, "n_jobs": 1}
    try:
        from openTSNE import TSNE
    except ImportError:
        from sklearn.manifold import TSNE as Slower  # noqa: N811 (no constant)

        return FlatMap("scikit-learn", Slower(init="pca", **given).fit_transform(features))
    return FlatMap("openTSNE", np.asarray(TSNE(initialization="pca", **given).fit(features)))
