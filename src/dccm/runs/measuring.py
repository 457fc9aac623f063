"""Judge a run without labels: what its model says of its images, as they are and slightly perturbed."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from dccm.arrays import Bytes, Floats, Inputs
from dccm.data.perturb import PerturbationConfig, perturb
from dccm.evaluation.unlabelled import Clusters, beyond_chance, by_cluster, silhouettes, sureness_and_balance
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.map_encoder import MapEncoder
from dccm.runs.features import halves_of
from dccm.runs.judgement import Judgement
from dccm.runs.model import Model

SLIGHTLY = PerturbationConfig(rotation=5.0, shift=0.05, zoom=(0.95, 1.05), flip=False, channel_shift=0.05)
"""The same for all methods, whatever they learn from, so that runs can be compared."""
_IMAGES, _PICTURES, _FEATURES = 1000, 200, 2000
"""Images of which predictions are looked at; that a pretrained encoder sees perturbed, slowly; in silhouettes."""
_MOST_VALUES = 1 << 23
"""Of features in silhouettes: 32 MB."""
_AT_ONCE = 1 << 22
"""Values of pixels that are perturbed at once."""
Pixels = Callable[[np.ndarray[Any, np.dtype[np.int64]]], Bytes]
"""Rows of images -> their pixels, (M, H, W, C)."""


def drawn(count: int, most: int, seed: int) -> Clusters:
    """Rows of so many images at random, rising; all if there are no more."""
    rows: Clusters = np.sort(np.random.default_rng(seed).permutation(count)[:most])
    return rows


def judge_features(features: Floats | None, clusters: Clusters, n_clusters: int, seed: int) -> dict[str, Any]:
    """The silhouettes of a judgement."""
    if features is None:
        return {"silhouette": None, "silhouettes": []}
    rows = drawn(len(clusters), min(_FEATURES, max(2, _MOST_VALUES // features.shape[1])), seed)
    found = silhouettes(features[rows], clusters[rows])
    if found is None:
        return {"silhouette": None, "silhouettes": []}
    return {"silhouette": float(found.mean()), "silhouettes": by_cluster(found, clusters[rows], n_clusters)}


def judge_predictions(model: Model, inputs: Inputs) -> dict[str, Any]:
    """How sure and balanced predictions are."""
    rows = drawn(len(inputs), _IMAGES, model.config.training.seed)
    probabilities = model.predict_proba(inputs[rows])
    sureness, balance = sureness_and_balance(probabilities) if probabilities.shape[1] > 1 else (None, None)
    return {"images": len(rows), "sureness": sureness, "balance": balance}


def judge_perturbed(
    model: Model, pixels: Pixels, clusters: Clusters, encoder: FeatureEncoder | None = None
) -> dict[str, Any]:
    """How many images keep their cluster when they are slightly perturbed.

    Args:
        model: What assigns them.
        pixels: Gives the images themselves.
        clusters: Of all of them, (N,).
        encoder: What makes vectors of them, for a model that takes such.
    """
    seed, n_clusters = model.config.training.seed, model.config.data.n_clusters
    rows = drawn(len(clusters), _PICTURES if encoder else _IMAGES, seed)
    generator = torch.Generator().manual_seed(seed)
    parts = np.array_split(rows, max(1, len(rows) * math.prod(model.picture_shape) // _AT_ONCE))
    copies = (_perturbed(pixels(part), generator) for part in parts)
    found = np.concatenate([model.assign(_inputs(images, encoder)).clusters for images in copies])
    same = found == clusters[rows]
    return {
        "perturbed": len(rows),
        "unmoved": float(same.mean()),
        "beyond_chance": beyond_chance(found, clusters[rows], n_clusters),
        "unmoved_of": by_cluster(same.astype(np.float64), clusters[rows], n_clusters),
    }


def _perturbed(images: Bytes, generator: torch.Generator) -> Bytes:
    """A slightly perturbed copy of each image, (B, H, W, C)."""
    values = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).float().div_(255)
    copies = perturb(values, SLIGHTLY, generator).mul_(255).round_().byte()
    return np.ascontiguousarray(copies.permute(0, 2, 3, 1).numpy())


def _inputs(images: Bytes, encoder: FeatureEncoder | None) -> Inputs:
    """What the model takes in the place of images."""
    if encoder is None:
        return images
    starts = range(0, len(images), encoder.at_once)
    made = np.concatenate([halves_of(encoder, images[start : start + encoder.at_once]) for start in starts])
    return made if isinstance(encoder, MapEncoder) else made[:, np.newaxis, np.newaxis]


def judge_model(
    model: Model,
    inputs: Inputs,
    images: Bytes,
    features: Floats | None,
    clusters: Clusters,
    encoder: FeatureEncoder | None = None,
) -> Judgement:
    """All that can be said of a run by itself.

    Args:
        model: It was trained on the images.
        inputs: The images, or vectors in their place.
        images: The images themselves, (N, H, W, C).
        features: Their deep features, (N, D); None: they were not kept.
        clusters: Their clusters, (N,).
        encoder: What made vectors of them; None: there are none, or it is out of reach, and nothing is perturbed.
    """
    seed, n_clusters = model.config.training.seed, model.config.data.n_clusters
    can_look = encoder is not None or model.pretrained is None
    return Judgement(
        **judge_predictions(model, inputs),
        **judge_features(features, clusters, n_clusters, seed),
        **(judge_perturbed(model, lambda rows: images[rows], clusters, encoder) if can_look else {}),
    )
