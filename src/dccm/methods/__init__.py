"""All methods by name: one method, one file."""

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
from dccm.methods.spectral import SpectralMethod
from dccm.methods.vae import VAEMethod

METHODS: dict[str, type[Clusterer]] = {
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
}
