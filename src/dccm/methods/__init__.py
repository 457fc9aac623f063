"""All methods by name: one method, one file. Nothing is imported before it is asked for: torch takes seconds."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dccm.arrays import ImageShape
from dccm.config import Section
from dccm.methods.facts import Facts, facts_of

if TYPE_CHECKING:
    from dccm.methods.base import Clusterer

_CLASSES = {
    "dccm": "DCCMMethod",
    # Table 2 of the paper, in its order.
    "kmeans": "KMeansMethod",
    "spectral": "SpectralMethod",
    "agglomerative": "AgglomerativeMethod",
    "nmf": "NMFMethod",
    "ae": "AEMethod",
    "dae": "DAEMethod",
    "gan": "GANMethod",
    "decnn": "DeCNNMethod",
    "vae": "VAEMethod",
    "jule": "JULEMethod",
    "dec": "DECMethod",
    "dac": "DACMethod",
    # Figure 4 and Table 5.
    "nat": "NATMethod",
    "aae": "AAEMethod",
    "bigan": "BiGANMethod",
    "dim": "DIMMethod",
    "rotnet": "RotNetMethod",
    "deepcluster": "DeepClusterMethod",
    # Heads on the vectors of a pretrained encoder; not in the paper.
    "scan": "SCANMethod",
    "temi": "TEMIMethod",
    "turtle": "TURTLEMethod",
}
"""In the file of that name."""


class _Methods(Mapping[str, "type[Clusterer[Any]]"]):
    """The classes by name."""

    def __getitem__(self, name: str) -> "type[Clusterer[Any]]":
        kind: type[Clusterer[Any]] = getattr(import_module(f"dccm.methods.{name}"), _CLASSES[name])
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __len__(self) -> int:
        return len(_CLASSES)


METHODS = _Methods()


def method_facts(name: str) -> Facts:
    """What `dccm methods` says of a method."""
    return facts_of(name, _CLASSES[name])


def build_method(name: str, shape: ImageShape, n_clusters: int, config: Section) -> "Clusterer[Any]":
    """A method with fresh weights, ready to learn; with several starts, if its settings ask for them.

    Args:
        name: One of `METHODS`.
        shape: Shape of the images.
        n_clusters: K.
        config: Of the method's `config_type`.
    """
    from dccm.methods.starts import SeveralStarts

    starts = [METHODS[name](shape, n_clusters, config) for _ in range(getattr(config, "starts", 1))]
    return SeveralStarts(starts) if len(starts) > 1 else starts[0]  # type: ignore[arg-type]
