"""Score the frozen features of a run."""

from pathlib import Path
from typing import Any, Unpack

from dccm.commands.reading import Reading, read_for
from dccm.errors import require
from dccm.evaluation.probe import LAYERS, Layer, ProbeConfig, Probed, probe_encoder
from dccm.methods.base import encoder_of
from dccm.networks.base import Encoder
from dccm.progress import SILENT, Watcher
from dccm.runs.model import Model


def probe(
    run: str | Path,
    images: Any,
    *,
    layer: str = "both",
    test_share: float | None = None,
    seed: int = 0,
    device: str = "auto",
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> Probed:
    """How well one hidden layer learns true classes from the features of a run (Figure 4).

    Args:
        run: Run directory, or model folder.
        images: What `read_images` takes, with labels, and with splits unless `test_share` is given.
        layer: `conv`, the last convolution; `y`, the deep feature; or `both`.
        test_share: Draw so many test images at random, instead of by the images' own splits.
        seed: Decides the probe's draws.
        device: Where the features are computed.
        watcher: Is told how it gets on.
        **reading: Which images, and how they are read; see `Reading`.
    """
    require(layer in (*LAYERS, "both"), f"layer must be conv, y or both, got '{layer}'.")
    layers: tuple[Layer, ...] = tuple(name for name in LAYERS if layer in (name, "both"))
    config = ProbeConfig(seed=seed)
    model = Model.load(Path(run), device)
    encoder = _encoder(model)  # Before images are read, which can take long.
    image_set = read_for(model, images, watcher, **reading)
    loader = model.loader(image_set.images)
    return probe_encoder(
        encoder, loader, image_set, layers, test_share=test_share, config=config, on_progress=watcher.training
    )


def _encoder(model: Model) -> Encoder:
    encoder = encoder_of(model.method)
    require(
        encoder is not None,
        f"The method '{model.config.method}' has no encoder whose layers could be probed. Probe a run of a method "
        "that learns a network, such as dccm.",
    )
    assert encoder is not None
    return encoder
