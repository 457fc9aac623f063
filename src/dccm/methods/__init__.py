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
    "dac": DACMethod,
    "dccm": DCCMMethod,
    "dec": DECMethod,
    "jule": JULEMethod,
    "kmeans": KMeansMethod,
    "spectral": SpectralMethod,
    "agglomerative": AgglomerativeMethod,
    "nmf": NMFMethod,
    "rotnet": RotNetMethod,
    "nat": NATMethod,
    "dim": DIMMethod,
    "deepcluster": DeepClusterMethod,
    "vae": VAEMethod,
    "dae": DAEMethod,
    "gan": GANMethod,
    "aae": AAEMethod,
    "bigan": BiGANMethod,
    "decnn": DeCNNMethod,
    "ae": AEMethod,
}
