"""All methods by name: one method, one file."""

from dccm.methods.base import Clusterer
from dccm.methods.dccm import DCCMMethod
from dccm.methods.kmeans import KMeansMethod

METHODS: dict[str, type[Clusterer]] = {
    "dccm": DCCMMethod,
    "kmeans": KMeansMethod,
}
