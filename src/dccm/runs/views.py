"""Perturbed views of images as a pretrained encoder sees them: vectors beside the vectors of the images themselves."""

from typing import Any

from dccm.arrays import Halves
from dccm.data.images import ImageSet
from dccm.data.perturb import PerturbationConfig
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.perturbed_encoder import PerturbedEncoder
from dccm.runs.config import RunConfig
from dccm.runs.features import features_of_images


def views_of(image_set: ImageSet, encoder: FeatureEncoder | None, config: RunConfig, **others: Any) -> list[Halves]:
    """Vectors of as many perturbed copies of the images as settings want, (N, 1, 1, D) each, mapped from the cache.

    Each view has a folder of the cache, so another one more does not compute the others anew.

    Args:
        image_set: The images.
        encoder: What makes vectors of them.
        config: How many views, and the ranges of the method's own perturbation where it has one.
        others: As for `features_of_images`.
    """
    if encoder is None:
        return []
    ranges = getattr(config.own, "perturbation", PerturbationConfig())
    seen_by = [PerturbedEncoder(encoder, ranges, number) for number in range(config.data.views)]
    return [features_of_images(image_set, perturbed, **others)[:, None, None] for perturbed in seen_by]
