"""What frozen features of a run say of true classes: encoders that learnt from training images alone, and their probe.

The paper's classification task (Section 4.1): 10 classes of CIFAR-10, all 100 of CIFAR-100; its clustering task takes
the images of both splits, so runs of tables of clusters do not do.
"""

from dataclasses import dataclass
from typing import Any

from dccm.data.images import ImageSet
from dccm.evaluation.probe import ProbeConfig, probe_encoder
from dccm.experiments.measure import Measure, check_shares
from dccm.experiments.request import Request
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.methods.base import encoder_of
from dccm.runs.directory import RunDirectory
from dccm.runs.model import Model

_FINE: dict[str, dict[str, Any]] = {"cifar100": {"variant": "fine", "settings": {"n_clusters": 100}}}
"""Data sets of which the probe learns other classes than those that are clustered."""


def probed_runs(request: Request, method: str, dataset: str, preset: str | None = None) -> list[RunSpec]:
    """The runs of a system whose encoder is probed, one for each seed."""
    return request.over_seeds(method, dataset, preset=preset, split="train", **_FINE.get(dataset, {}))


def take_probe(directory: RunDirectory, image_set: ImageSet) -> dict[str, Any]:
    """Accuracy on the test images of a probe of the last convolution, `conv`, and of the deep feature, `y`."""
    model = Model.load(directory.path)
    encoder = encoder_of(model.method)
    assert encoder is not None, "Only methods with an encoder are probed."
    config = ProbeConfig(seed=model.config.training.seed)
    probed = probe_encoder(encoder, model.loader(image_set.images), image_set, config=config)
    return dict(probed.accuracy) | {"train_images": probed.train_images, "test_images": probed.test_images}


@dataclass(frozen=True)
class Probed:
    """What the probe found."""

    conv: float
    y: float
    train_images: int = 0
    test_images: int = 0

    def __post_init__(self) -> None:
        check_shares("conv and y", (self.conv, self.y))


PROBE = Measure("probe", take_probe, Probed)


def probe_values(results: Results, runs: list[RunSpec], layer: str) -> tuple[float, ...]:
    """Accuracy of the probe of a layer, for each run of which it is there."""
    found = [results.measured(run, PROBE) for run in runs]
    return tuple(one.conv if layer == "conv" else one.y for one in found if one is not None)
