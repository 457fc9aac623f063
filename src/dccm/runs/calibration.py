"""Fit a model's confidence to its images when it is trained; no label can be passed."""

from collections.abc import Iterator

import numpy as np
import torch

from dccm.arrays import Floats, Inputs
from dccm.data.perturb import PerturbationConfig, perturb
from dccm.grouping.agreement import OTHERS, fit_temperature, votes_of_others
from dccm.grouping.outliers import sample_of
from dccm.runs.confidence import Confidence
from dccm.runs.model import Model
from dccm.training.progress import OnProgress, Stage

_VECTORS, _IMAGES = 3000, 1000
"""Vectors or images that others are asked about: enough for a single number, and images go through a network."""
_FEWEST_PER_CLUSTER = 5
"""Images per cluster with which the answers say something."""
_VIEWS = 4
"""Perturbed copies of each image that others are asked about."""


def fit_confidence(model: Model, inputs: Inputs, on_progress: OnProgress) -> None:
    """Give a trained model its temperature and its sample for outliers; too few images leave probabilities raw.

    Args:
        model: It is changed.
        inputs: What it was trained on.
        on_progress: Called as it gets on.
    """
    seed, n_clusters = model.config.training.seed, model.config.data.n_clusters
    rows = np.sort(
        np.random.default_rng(seed).permutation(len(inputs))[: _VECTORS if model.shape.is_vector else _IMAGES]
    )
    chosen: Inputs = inputs[rows]
    features = model.evidence(chosen)
    model.sample = sample_of(features, seed)
    if len(chosen) >= _FEWEST_PER_CLUSTER * n_clusters:
        model.confidence = _confidence(model, chosen, features, on_progress)
    on_progress(Stage("confidence", 1.0))


def _confidence(model: Model, chosen: Inputs, features: Floats, on_progress: OnProgress) -> Confidence:
    probabilities = model.predict_proba(chosen)
    clusters, count = probabilities.argmax(axis=1), probabilities.shape[1]
    looks = list(_perturbed(model, chosen)) or [features]
    votes = np.zeros(probabilities.shape)
    for done, vote in enumerate(votes_of_others(features, looks, clusters, count, model.config.training.seed)):
        votes += vote / OTHERS
        on_progress(Stage("confidence", done / OTHERS))
    agreement = float(votes[np.arange(len(votes)), clusters].mean())
    # As if one more image had votes for all clusters alike: agreement on all images is not certainty.
    votes = (votes * len(votes) + 1 / count) / (len(votes) + 1)
    return Confidence(fit_temperature(probabilities, votes), agreement)


@torch.inference_mode()
def _perturbed(model: Model, chosen: Inputs) -> Iterator[Floats]:
    """Features of images that are perturbed as the method does it; vectors and other methods have none."""
    ranges = getattr(model.config.own, "perturbation", None)
    if model.shape.is_vector or not isinstance(ranges, PerturbationConfig):
        return
    loader = model.loader(chosen)
    generator = torch.Generator(loader.device).manual_seed(model.config.training.seed)
    for _ in range(_VIEWS):
        yield loader.over_all(lambda images: model.method.embed(perturb(images, ranges, generator)))
