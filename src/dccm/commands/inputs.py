"""From images that the user named to what methods work on: the images themselves, or what an encoder makes of them."""

from pathlib import Path
from typing import Any, NamedTuple, Unpack

from dccm.arrays import Halves, Inputs
from dccm.commands.reading import Reading, read
from dccm.config import Settings
from dccm.data.images import ImageSet
from dccm.data.sources.base import Source
from dccm.methods import METHODS
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.progress import Watcher
from dccm.runs.automatic import AUTO, automatic_encoder
from dccm.runs.config import RunConfig, make_config
from dccm.runs.features import Pretrained, encoder_for, inputs_of
from dccm.runs.views import views_of


class Taken(NamedTuple):
    """Images, and what stands in their place."""

    image_set: ImageSet
    inputs: Inputs
    encoder: FeatureEncoder | None
    pretrained: Pretrained | None
    views: list[Halves]


def take_inputs(source: Source | ImageSet, config: RunConfig, watcher: Watcher, **reading: Unpack[Reading]) -> Taken:
    """Read images as settings want them, and let the encoder that they name look at them."""
    cache = reading.get("cache")
    using: Any = {name: reading.get(name) for name in ("cache", "workers", "processes")}
    encoder = encoder_for(config, cache)
    sizes: dict[str, Any] = {"image_size": config.data.image_size, "fit": config.data.fit}
    sizes["up_to"] = encoder.preprocessing.side if encoder else None
    image_set = read(source, watcher, **using, **sizes)
    told: dict[str, Any] = {"cache": cache, "on_progress": watcher.training, "say": watcher.say}
    inputs, pretrained = inputs_of(image_set, encoder, **told)
    return Taken(image_set, inputs, encoder, pretrained, views_of(image_set, encoder, config, **told))


def with_encoder(
    config: RunConfig,
    source: Source | ImageSet,
    *,
    encoder: str | None,
    preset: str | None,
    given: Settings,
    cache: str | Path | None,
    watcher: Watcher,
) -> RunConfig:
    """Settings with the encoder that suits the images, where that is left open.

    Args:
        config: Settings as they are without one.
        source: The images.
        encoder: What the user said; None: nothing, which leaves it open unless there is a preset, or more than the
            usual settings, or a data set by name.
        preset: What the user said.
        given: All settings that the user gave.
        cache: Folder of the cache; None: the user's.
        watcher: Is told what was chosen.
    """
    is_open = encoder is None and not (preset or config.dataset or set(given) - _LEAVE_OPEN)
    if not (encoder == AUTO or is_open) or not METHODS[config.method].takes_vectors:
        return config
    chosen = automatic_encoder(source, config.data.image_size, cache=cache, say=watcher.say)
    return make_config(config.method, preset, config.dataset, given | {"encoder": chosen})


_LEAVE_OPEN = frozenset({"n_clusters", "seed", "epochs", "image_size", "device", "budget_minutes", "budget_passes"})
"""Settings that mean the same with any encoder."""
