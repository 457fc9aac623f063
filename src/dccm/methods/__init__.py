"""All methods by name: one method, one file."""

from typing import Any

from dccm.arrays import ImageShape
from dccm.config import Section
from dccm.methods.aae import AAEMethod
from dccm.methods.ae import AEMethod
from dccm.methods.agglomerative import AgglomerativeMethod
from dccm.methods.base import Clusterer
from dccm.methods.bigan import BiGANMethod
from dccm.methods.dac import DACMethod
from dccm.methods.dae import DAEMethod
from dccm.methods.dccm import DCCMMethod
from dccm.methods.dec import DECMethod
from dccm.methods.decnn import DeCNNMethod
from dccm.methods.deepcluster import DeepClusterMethod
from dccm.methods.dim import DIMMethod
from dccm.methods.gan import GANMethod
from dccm.methods.jule import JULEMethod
from dccm.methods.kmeans import KMeansMethod
from dccm.methods.nat import NATMethod
from dccm.methods.nmf import NMFMethod
from dccm.methods.rotnet import RotNetMethod
from dccm.methods.scan import SCANMethod
from dccm.methods.spectral import SpectralMethod
from dccm.methods.starts import SeveralStarts
from dccm.methods.temi import TEMIMethod
from dccm.methods.turtle import TURTLEMethod
from dccm.methods.vae import VAEMethod

METHODS: dict[str, type[Clusterer[Any]]] = {
    "dccm": DCCMMethod,
    # Table 2 of the paper, in its order.
    "kmeans": KMeansMethod,
    "spectral": SpectralMethod,
    "agglomerative": AgglomerativeMethod,
    "nmf": NMFMethod,
    "ae": AEMethod,
    "dae": DAEMethod,
    "gan": GANMethod,
    "decnn": DeCNNMethod,
    "vae": VAEMethod,
    "jule": JULEMethod,
    "dec": DECMethod,
    "dac": DACMethod,
    # Figure 4 and Table 5.
    "nat": NATMethod,
    "aae": AAEMethod,
    "bigan": BiGANMethod,
    "dim": DIMMethod,
    "rotnet": RotNetMethod,
    "deepcluster": DeepClusterMethod,
    # Heads on the vectors of a pretrained encoder; not in the paper.
    "scan": SCANMethod,
    "temi": TEMIMethod,
    "turtle": TURTLEMethod,
}


def build_method(name: str, shape: ImageShape, n_clusters: int, config: Section) -> Clusterer[Any]:
    """A method with fresh weights, ready to learn; with several starts, if its settings ask for them.

    Args:
        name: One of `METHODS`.
        shape: Shape of the images.
        n_clusters: K.
        config: Of the method's `config_type`.
    """
    starts = [METHODS[name](shape, n_clusters, config) for _ in range(getattr(config, "starts", 1))]
    return SeveralStarts(starts) if len(starts) > 1 else starts[0]  # type: ignore[arg-type]
